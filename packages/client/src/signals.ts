/** Waits for abort signals. Pure but for the listeners on them. */

/** One listener on each signal, whatever waits for it: hosts warn of leaks where a signal has more than a few. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls once when the signal aborts, at once if it did before; the returned function forgets it. */
export function onAbort(signal: AbortSignal | undefined, action: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    action(signal.reason);
    return () => {};
  }
  const actions = waiting.get(signal) ?? listen(signal);
  const act = (): void => action(signal.reason);
  actions.add(act);
  return () => void actions.delete(act);
}

function listen(signal: AbortSignal): Set<() => void> {
  const actions = new Set<() => void>();
  waiting.set(signal, actions);
  const abort = (): void => {
    for (const act of actions) {
      actions.delete(act);
      act();
    }
  };
  signal.addEventListener('abort', abort, { once: true });
  return actions;
}
