/** What of the client depends on where it runs; `#host` in package.json picks the file that has it. */
import type { LocalDisk } from '../transfer/localDisk.js';
import type { Carrier, Dialer } from './dialer.js';
import type { ChildOptions } from './childOptions.js';

export interface SocketRequest {
  readonly url: URL;
  /** What stands in errors and logs: the URL without what may be secret. */
  readonly label: string;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

export interface Host {
  /** Opens a WebSocket. Rejects as `Dialer.dial` does. */
  openSocket(request: SocketRequest): Promise<Carrier>;
  /** Throws NOT_SUPPORTED where programs cannot be started. */
  childDialer(options: ChildOptions): Dialer;
  /** Rejects with NOT_SUPPORTED where there are no files. */
  localDisk(): Promise<LocalDisk>;
}
