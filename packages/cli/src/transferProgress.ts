/** How a transfer goes on, on stderr: one line that moves on a terminal, a line now and then otherwise. */
import type { WriteStream } from 'node:tty';
import type { TransferProgress, TransferResult } from '@exec-server/client';
import { shownName } from './operands.js';

const REDRAW_MS = 100;
/** Between two plain lines. */
const LINE_MS = 10_000;
const BAR_LENGTH = 24;

type Output = Pick<WriteStream, 'write'> & { readonly isTTY?: boolean; readonly columns?: number };

export class TransferLine {
  readonly #out: Output;
  readonly #quiet: boolean;
  readonly #now: () => number;
  #startedAt = 0;
  #shownAt = 0;
  #isDrawn = false;

  constructor(out: Output, quiet: boolean, now: () => number = () => performance.now()) {
    this.#out = out;
    this.#quiet = quiet;
    this.#now = now;
    this.begin();
  }

  /** The time counts from here. */
  begin(): void {
    this.#startedAt = this.#now();
    this.#shownAt = this.#startedAt;
  }

  update(progress: TransferProgress): void {
    if (this.#quiet) return;
    const now = this.#now();
    const isTerminal = this.#out.isTTY === true;
    if (now - this.#shownAt < (isTerminal ? REDRAW_MS : LINE_MS)) return;
    this.#shownAt = now;
    const text = progressText(progress, now - this.#startedAt);
    if (isTerminal) this.#out.write(`\r\u001b[K${text.slice(0, (this.#out.columns ?? 80) - 1)}`);
    else this.#out.write(`exec-server: ${text}\n`);
    this.#isDrawn = isTerminal;
  }

  /** Removes the line, before something else is written. */
  clear(): void {
    if (this.#isDrawn) this.#out.write('\r\u001b[K');
    this.#isDrawn = false;
  }

  /** What was done in the end. */
  finish(result: Pick<TransferResult, 'files' | 'directories' | 'links' | 'bytes'>): void {
    this.clear();
    if (!this.#quiet) this.#out.write(`exec-server: ${summary(result, this.#now() - this.#startedAt)}\n`);
  }
}

/** `elapsedMs`: since the start. */
export function progressText(
  { files, bytes, totalFiles, totalBytes, path }: TransferProgress,
  elapsedMs: number,
): string {
  const share = totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(1, bytes / totalBytes);
  const bar = share === undefined ? '' : `${'#'.repeat(Math.round(share * BAR_LENGTH)).padEnd(BAR_LENGTH, '.')} `;
  const percent = share === undefined ? '' : `${Math.floor(share * 100)}% `;
  const of = totalBytes === undefined ? '' : ` of ${bytesText(totalBytes)}`;
  const ofFiles = totalFiles === undefined ? '' : ` of ${totalFiles}`;
  const counts = `${bytesText(bytes)}${of}, ${files}${ofFiles} files, ${rateText(bytes, elapsedMs)}`;
  return `${bar}${percent}${counts}${path === '' ? '' : `  ${shownName(path)}`}`;
}

export function summary(
  { files, directories, links, bytes }: Pick<TransferResult, 'files' | 'directories' | 'links' | 'bytes'>,
  elapsedMs: number,
): string {
  const counts = [
    many(files, 'file'),
    ...(directories === 0 ? [] : [many(directories, 'folder')]),
    ...(links === 0 ? [] : [many(links, 'link')]),
  ];
  const seconds = (elapsedMs / 1000).toFixed(1);
  return `${counts.join(', ')}; ${bytesText(bytes)} in ${seconds} s (${rateText(bytes, elapsedMs)})`;
}

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
const rateText = (bytes: number, ms: number): string => `${bytesText(ms <= 0 ? 0 : (bytes * 1000) / ms)}/s`;

/** `1.5 MiB` */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}
