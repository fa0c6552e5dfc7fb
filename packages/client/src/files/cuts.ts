/** When a transfer gives up: a connection that is cut by the transfer itself would be restored for ever. Pure. */
import { ClientError } from '../errors.js';
import { shownPath } from './wirePath.js';

/** Cuts in a row without progress, after which any transfer is given up. */
export const CUTS_WITHOUT_PROGRESS = 8;

export class Cuts {
  readonly #path: string;
  #inRow = 0;

  /** `path`: a URI, or as it is shown. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Something arrived that need not be sent again. */
  progress(): void {
    this.#inRow = 0;
  }

  /** Counts a cut; throws TRANSFER_LOST where it is one too many. */
  count(cause: Error): void {
    this.#inRow += 1;
    if (this.#inRow < CUTS_WITHOUT_PROGRESS) return;
    const path = shownPath(this.#path);
    const message = `the connection was cut ${this.#inRow} times in a row while ${path} was carried, without any progress; something on the way may not let it pass; begin again later`;
    throw new ClientError('TRANSFER_LOST', message, { path, retryable: true }, cause);
  }
}
