/** Our stdout, for commands that write much to it. */
import { CommandError } from './exitCodes.js';
import { pass, READER_GONE } from './pass.js';

/** Our stdout, and whether somebody reads it. */
export class Output {
  #fault: NodeJS.ErrnoException | undefined;
  readonly #onError = (fault: NodeJS.ErrnoException): void => void (this.#fault ??= fault);

  constructor() {
    process.stdout.on('error', this.#onError);
  }

  get isGone(): boolean {
    return this.#fault !== undefined;
  }

  /** At the pace of the reader. */
  async pass(bytes: Uint8Array | string): Promise<void> {
    await pass(process.stdout, bytes);
  }

  /** Resolves when what was passed has left, or cannot: a small output fails after the last call alone. */
  async written(): Promise<void> {
    if (this.isGone) return;
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
    // The event follows the callback.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The exit code for a reader that has gone; throws CommandError for an output that cannot be written. */
  check(): number | undefined {
    if (this.#fault === undefined) return undefined;
    if (this.#fault.code === 'EPIPE') return READER_GONE;
    throw new CommandError(`the output cannot be written (${this.#fault.message})`);
  }

  stop(): void {
    process.stdout.off('error', this.#onError);
  }
}

/** The exit code of `use`, unless the output says otherwise. */
export async function withOutput(use: (output: Output) => Promise<number>): Promise<number> {
  const output = new Output();
  try {
    const code = await use(output);
    await output.written();
    return output.check() ?? code;
  } finally {
    output.stop();
  }
}
