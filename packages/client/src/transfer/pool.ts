/** Runs jobs side by side, a few at a time. Pure. */

/**
 * The first failure ends it: no further job is begun, `stop` is told, the running ones are waited for, and it is thrown.
 * Jobs are taken from the iterable as there is room for them.
 */
export async function runPool<T>(
  jobs: Iterable<T>,
  most: number,
  run: (job: T) => Promise<void>,
  stop?: (error: unknown) => void,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  const iterator = jobs[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    while (failure === undefined) {
      const next = iterator.next();
      if (next.done === true) return;
      try {
        await run(next.value);
      } catch (error) {
        if (failure === undefined) stop?.(error);
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: most }, worker));
  if (failure !== undefined) throw failure.error;
}
