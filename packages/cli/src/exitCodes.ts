/** Exit codes of the command. Pure. */
export const ExitCode = {
  ok: 0,
  /** Something failed at run time: a port in use, a file that cannot be read, a server that is gone. */
  failure: 1,
  /** The command line is wrong. */
  usage: 2,
} as const;

/** An error that ends the command: one sentence on stderr, then this code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;
  constructor(message: string, exitCode: number = ExitCode.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}
