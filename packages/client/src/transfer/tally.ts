/** Counts what a transfer has done, and tells its caller. */
import { shownBytes } from './bytePath.js';
import type { SkippedEntry, SkipReason, Tree, TreeItem } from './tree.js';
import { isFile } from './tree.js';

/** What was carried. */
export interface TransferResult {
  /** Files that are in their place. */
  readonly files: number;
  /** Folders that are in their place. */
  readonly directories: number;
  /** Symbolic links that are in their place. */
  readonly links: number;
  /** Of the contents of the files. */
  readonly bytes: number;
  /** What was not carried, and why. */
  readonly skipped: readonly SkippedEntry[];
}

/** How far a transfer is. */
export interface TransferProgress {
  /** Files that are done. */
  readonly files: number;
  /** Bytes of contents that have arrived, of files that are not done as well. */
  readonly bytes: number;
  /** Files there are; known once the source was listed, and they may change after that. */
  readonly totalFiles?: number;
  /** Bytes of their contents, as they were listed. */
  readonly totalBytes?: number;
  /** What has just gone on, relative to the source. */
  readonly path: string;
}

/** Takes the progress of a transfer; called within it, so it should return at once. */
export type ProgressListener = (progress: TransferProgress) => void;

export class Tally {
  readonly #listener: ProgressListener | undefined;
  readonly #skipped: SkippedEntry[] = [];
  #totals: { totalFiles: number; totalBytes: number } | undefined;
  #files = 0;
  #directories = 0;
  #links = 0;
  #bytes = 0;

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener;
  }

  get result(): TransferResult {
    return {
      files: this.#files,
      directories: this.#directories,
      links: this.#links,
      bytes: this.#bytes,
      skipped: [...this.#skipped],
    };
  }

  listed({ items, skipped }: Tree): void {
    this.#skipped.push(...skipped);
    const files = items.filter(isFile);
    this.#totals = { totalFiles: files.length, totalBytes: files.reduce((sum, { size }) => sum + size, 0) };
    this.#tell('');
  }

  skip(path: string, reason: SkipReason): void {
    this.#skipped.push({ path, reason });
  }

  /** Bytes of a file that have arrived. */
  moved(name: string, bytes: number): void {
    this.#bytes += bytes;
    this.#tell(name);
  }

  /** One thing is in its place. The bytes of a file were told by `moved`. */
  done({ kind, name }: Pick<TreeItem, 'kind' | 'name'>): void {
    if (kind === 'file') this.#files += 1;
    else if (kind === 'directory') this.#directories += 1;
    else this.#links += 1;
    this.#tell(name);
  }

  #tell(name: string): void {
    this.#listener?.({ files: this.#files, bytes: this.#bytes, ...this.#totals, path: shownBytes(name) });
  }
}
