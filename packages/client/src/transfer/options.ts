/** Options of transfers, and what they share. */
import { host } from '#host';
import type { Clock } from '../clock.js';
import { ClientError, isClientError } from '../errors.js';
import type { FileCalls } from '../files/fileCalls.js';
import type { LocalDisk } from './localDisk.js';
import { Remote } from './remote.js';
import { type ProgressListener, Tally, type TransferResult } from './tally.js';

/** How {@link FileSystem.upload} and {@link FileSystem.download} carry files. */
export interface TransferOptions {
  /**
   * A folder that is carried onto an existing folder lands inside of it, under its own name, as with `cp -r`. Default false:
   * its contents are merged into the destination.
   */
  readonly includeParent?: boolean | undefined;
  /** False refuses files and links that exist, with EEXIST; looked up before anything is carried. Default true. */
  readonly overwrite?: boolean | undefined;
  /** Carry what links lead to. Default false: links below the source are carried as links. The source itself is followed. */
  readonly followSymlinks?: boolean | undefined;
  /** Told as it goes on; may come often. */
  readonly onProgress?: ProgressListener | undefined;
  /** Ends it with ABORTED. What is complete stays; no part of a file does. */
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, recovery included, in ms. Default: no limit. */
  readonly timeoutMs?: number | undefined;
}

export interface TransferHost {
  readonly files: FileCalls;
  readonly clock: Clock;
}

/** What the parts of one transfer work with. */
export interface Transfer {
  readonly remote: Remote;
  readonly disk: LocalDisk;
  readonly tally: Tally;
  readonly overwrite: boolean;
  readonly followSymlinks: boolean;
  readonly includeParent: boolean;
  /** Ends everything that is under way, for the caller gets the failure. */
  readonly stop: () => void;
}

/** Jobs of one transfer that are under way at a time. */
export const JOBS_IN_FLIGHT = 4;

/** Runs a transfer within its bounds. A ClientError it throws has what was done in `data.done`, a TransferResult. */
export async function runTransfer(
  what: 'upload' | 'download',
  { files, clock }: TransferHost,
  options: TransferOptions,
  action: (transfer: Transfer) => Promise<void>,
): Promise<TransferResult> {
  const { signal, timeoutMs } = options;
  const stopper = new AbortController();
  const stop = (): void => stopper.abort();
  let isLate = false;
  const cancel =
    timeoutMs === undefined
      ? undefined
      : clock.timer(timeoutMs, () => {
          isLate = true;
          stop();
        });
  signal?.addEventListener('abort', stop);
  if (signal?.aborted === true) stop();
  const tally = new Tally(options.onProgress);
  try {
    const disk = await host.localDisk();
    await action({
      remote: new Remote(files, { signal: stopper.signal }),
      disk,
      tally,
      overwrite: options.overwrite ?? true,
      followSymlinks: options.followSymlinks ?? false,
      includeParent: options.includeParent ?? false,
      stop,
    });
    return tally.result;
  } catch (error) {
    if (!isClientError(error)) throw error;
    const isEnd = error.code === 'ABORTED';
    const ended = isEnd && isLate ? tooLate(what, timeoutMs) : isEnd ? aborted(what, signal?.reason) : error;
    throw ended.with({ done: tally.result });
  } finally {
    cancel?.();
    signal?.removeEventListener('abort', stop);
  }
}

function aborted(what: string, reason: unknown): ClientError {
  return new ClientError('ABORTED', `the ${what} was aborted; what was complete stays`, {}, reason);
}

function tooLate(what: string, timeoutMs: number | undefined): ClientError {
  const message = `the ${what} was not done within ${timeoutMs} ms; what was complete stays`;
  return new ClientError('REQUEST_TIMEOUT', message, { retryable: true });
}
