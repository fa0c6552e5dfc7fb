/**
 * The spools of one server: owns their budgets, their number, and the private folder in which a file is made. A folder is
 * removed as soon as its file has no name any more, so that the death of this program leaves nothing.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { limits } from '@exec-server/protocol';
import { errnoCode } from '../../host/startErrors.js';
import { hostSegmentFs, openUnlinked, type SegmentFs } from './segmentFs.js';
import { type SegmentEvents, Segments } from './segments.js';
import { Spool } from './spool.js';
import { SpoolBudget } from './spoolBudget.js';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Budgets count what is held; a file may take up to one segment more until its last event is dropped. */
const SPOOL_BYTES_PER_PROCESS = 256 * MIB;
const SPOOL_BYTES_PER_SESSION = 1 * GIB;
const SPOOL_BYTES_PER_SERVER = 4 * GIB;

const FOLDER_PREFIX = 'exec-server-spool-';

/** Most bytes of undelivered output on disk. At the bound the oldest goes, and is told as a gap. */
export interface SpoolLimits {
  /** Of one process. Default 256 MiB. */
  readonly processBytes: number;
  /** Of one session. Default 1 GiB. */
  readonly sessionBytes: number;
  /** Of the server. Default 4 GiB. */
  readonly serverBytes: number;
}

const defaultSpoolLimits: SpoolLimits = {
  processBytes: SPOOL_BYTES_PER_PROCESS,
  sessionBytes: SPOOL_BYTES_PER_SESSION,
  serverBytes: SPOOL_BYTES_PER_SERVER,
};

export interface SpoolProblem {
  /** `unavailable`: no folder can be made; `full`: a file cannot be written; `left`: a folder could not be removed. */
  readonly kind: 'unavailable' | 'full' | 'left';
  /** The private folder for `left`, else the spool folder as configured. */
  readonly path: string;
  readonly errno: string;
}

export interface SpoolStoreOptions {
  /** Private folders are made in it. Default: the host's temporary folder. */
  readonly dir?: string | undefined;
  readonly limits?: SpoolLimits | undefined;
  /** Called for the first of several problems of a kind, and again when there was none in between. */
  readonly onProblem: (problem: SpoolProblem) => void;
  readonly fs?: SegmentFs;
  /** Default SEGMENT_BYTES. */
  readonly segmentBytes?: number;
}

export class SpoolStore {
  readonly #options: SpoolStoreOptions;
  readonly #fs: SegmentFs;
  readonly #dir: string;
  readonly #limits: SpoolLimits;
  readonly #budget: SpoolBudget;
  readonly #spools = new Set<Spool>();
  /** Made and not used yet. */
  #folder: string | undefined;
  #unavailable = false;
  #left = false;
  #closing: Promise<void> | undefined;

  constructor(options: SpoolStoreOptions) {
    this.#options = options;
    this.#fs = options.fs ?? hostSegmentFs;
    this.#dir = options.dir ?? tmpdir();
    this.#limits = options.limits ?? defaultSpoolLimits;
    this.#budget = new SpoolBudget(this.#limits.serverBytes);
  }

  /** Output bytes held, over all spools. */
  get spooledBytes(): number {
    return sum(this.#spools, (spool) => spool.bytes);
  }
  /** Those of them that are in memory. */
  get pendingBytes(): number {
    return sum(this.#spools, (spool) => spool.pendingBytes);
  }
  get spools(): number {
    return this.#spools.size;
  }

  /** What the processes of one session may take together; for `open`. */
  sessionBudget(): SpoolBudget {
    return new SpoolBudget(this.#limits.sessionBytes, this.#budget);
  }

  /** A spool for one process; its caller closes it. Undefined where there can be none: the process does without. */
  open(session: SpoolBudget, changed: () => void): Spool | undefined {
    if (this.#closing !== undefined || !this.#available()) return undefined;
    const spool: Spool = new Spool({
      openSegments: (events) => this.#openSegments(events, () => spool),
      budget: new SpoolBudget(this.#limits.processBytes, session),
      crowded: () => this.#writtenSoonBytes() >= limits.SPOOL_PENDING_BYTES_PER_SERVER,
      changed,
      closed: () => this.#spools.delete(spool),
    });
    this.#spools.add(spool);
    return spool;
  }

  /** Closes every spool; never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  #openSegments({ written, failed }: SegmentEvents, own: () => Spool): Segments {
    return new Segments({
      fs: this.#fs,
      openFile: () => this.#openFile(),
      written,
      failed: (error) => {
        const others = [...this.#spools].filter((spool) => spool !== own());
        const known = others.some((spool) => spool.errno !== undefined);
        if (!known) this.#problem('full', this.#dir, error);
        failed(error);
      },
      ...(this.#options.segmentBytes === undefined ? {} : { segmentBytes: this.#options.segmentBytes }),
    });
  }

  async #openFile(): Promise<number> {
    try {
      return await this.#openIn(this.#takeFolder());
    } catch (error) {
      // Hosts clean up their temporary folder, and the folder looks empty: it is made once more.
      if (errnoCode(error) !== 'ENOENT' || this.#closing !== undefined) throw error;
      return await this.#openIn(this.#takeFolder());
    }
  }

  async #openIn(folder: string): Promise<number> {
    try {
      return await openUnlinked(this.#fs, join(folder, 'segment'));
    } finally {
      await this.#removeFolder(folder);
    }
  }

  /** For one file. Throws where it cannot be made. */
  #takeFolder(): string {
    const folder = this.#makeFolder();
    this.#folder = undefined;
    return folder;
  }

  #makeFolder(): string {
    this.#folder ??= this.#fs.makeFolder(join(this.#dir, FOLDER_PREFIX));
    return this.#folder;
  }

  async #removeFolder(folder: string): Promise<void> {
    try {
      await this.#fs.removeFolder(folder);
      this.#left = false;
    } catch (error) {
      if (!this.#left) this.#problem('left', folder, error);
      this.#left = true;
    }
  }

  #available(): boolean {
    try {
      this.#makeFolder();
      this.#unavailable = false;
    } catch (error) {
      // Each process tries again, as the reason may pass; only the first failure is told.
      if (!this.#unavailable) this.#problem('unavailable', this.#dir, error);
      this.#unavailable = true;
    }
    return !this.#unavailable;
  }

  /** What waits for the disk where it takes bytes. */
  #writtenSoonBytes(): number {
    return sum(this.#spools, (spool) => (spool.errno === undefined ? spool.pendingBytes : 0));
  }

  async #closeAll(): Promise<void> {
    await Promise.all([...this.#spools].map((spool) => spool.close()));
    if (this.#folder !== undefined) await this.#removeFolder(this.#folder);
  }

  #problem(kind: SpoolProblem['kind'], path: string, error: unknown): void {
    this.#options.onProblem({ kind, path, errno: errnoCode(error) ?? 'EIO' });
  }
}

function sum(spools: Iterable<Spool>, bytes: (spool: Spool) => number): number {
  let total = 0;
  for (const spool of spools) total += bytes(spool);
  return total;
}
