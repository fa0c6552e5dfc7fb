/** How a server program is started. */

/** A server that is started here and ends with the client. Its stderr is read; the tail of it is in errors. */
export interface ChildOptions {
  /** Program and arguments of a server that speaks the protocol on stdin and stdout. */
  readonly command: readonly [string, ...string[]];
  /** Variables added to those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Its working directory. Default: that of this process. */
  readonly cwd?: string | undefined;
}
