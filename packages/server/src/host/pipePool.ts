/** Empty pipes kept ready, so that a start does not wait for a helper shell. Owns them until they are taken. */
import { existsSync } from 'node:fs';
import { WireError } from '@exec-server/protocol';
import { hostLimits } from './hostLimits.js';
import { type Batch, closePipes, type HelperShell, helperShells, makePipes, type Pipe } from './pipeHelper.js';
import { startError } from './startErrors.js';

export interface PipePoolOptions {
  /** Most pipes of one batch; each holds two descriptors. Default: 1/32 of the limit of open files, 3 to 128. */
  readonly batchPipes?: number;
  /** Kept when no start came for `idleMs`. Default 6. */
  readonly idlePipes?: number;
  /** Default 5000. */
  readonly idleMs?: number;
  readonly shells?: readonly HelperShell[];
}

/** First batch of a burst; batches double while refills follow each other within QUICK_REFILL_MS. */
const FIRST_BATCH_PIPES = 16;
const MOST_BATCH_PIPES = 128;
/** A start takes this many at most. */
const PIPES_PER_START = 3;
const QUICK_REFILL_MS = 1000;
/** Helpers at a time while starts wait; one otherwise. */
const CONCURRENT_HELPERS = 2;

interface Waiter {
  readonly count: number;
  readonly resolve: (pipes: readonly Pipe[] | undefined) => void;
  readonly reject: (error: WireError) => void;
}

export class PipePool {
  readonly #mostBatch: number;
  readonly #idlePipes: number;
  readonly #idleMs: number;
  #shells: readonly HelperShell[];
  readonly #free: Pipe[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #refills = new Set<Promise<void>>();
  #coming = 0;
  #batch: number;
  #refilledAt = Number.NEGATIVE_INFINITY;
  /** Pipes have been made here, so that a failure is a passing one. */
  #proven = false;
  #closed = false;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: PipePoolOptions = {}) {
    const share = Math.floor(hostLimits().openFiles / 32);
    this.#mostBatch = Math.max(PIPES_PER_START, options.batchPipes ?? Math.min(MOST_BATCH_PIPES, share));
    this.#batch = Math.min(FIRST_BATCH_PIPES, this.#mostBatch);
    this.#idlePipes = options.idlePipes ?? 6;
    this.#idleMs = options.idleMs ?? 5000;
    this.#shells = existsSync('/proc/self/fd') ? (options.shells ?? helperShells) : [];
  }

  /** Pipes held ready; each has two descriptors. */
  get free(): number {
    return this.#free.length;
  }

  /**
   * `count` empty pipes, now the caller's to close. Undefined where the host cannot make any. Rejects with
   * `tooManyOpenFiles` or `resourcesExhausted`, and with `serverStopping` after `close`.
   */
  take(count: number): Promise<readonly Pipe[] | undefined> {
    if (this.#closed) return Promise.reject(stopping());
    if (this.#shells.length === 0) return Promise.resolve(undefined);
    this.#restartIdleTimer();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ count, resolve, reject });
      this.#serve();
      this.#refillIfLow();
    });
  }

  /** Returns pipes no child has seen. */
  putBack(pipes: readonly Pipe[]): void {
    if (this.#closed) {
      closePipes(pipes);
      return;
    }
    this.#free.push(...pipes);
    // A batch that comes after the idle time was over would stay for good.
    if (this.#idleTimer === undefined) this.#restartIdleTimer();
    this.#serve();
  }

  /** Frees every descriptor and waits for helpers to be gone. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    this.#rejectWaiting(stopping());
    closePipes(this.#free.splice(0));
    await Promise.all(this.#refills);
  }

  #serve(): void {
    for (
      let waiter = this.#waiting[0];
      waiter !== undefined && waiter.count <= this.#free.length;
      waiter = this.#waiting[0]
    ) {
      this.#waiting.shift();
      waiter.resolve(this.#free.splice(-waiter.count));
    }
  }

  #rejectWaiting(error: WireError): void {
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error);
  }

  #refillIfLow(): void {
    if (this.#closed) return;
    let missing = -this.#free.length - this.#coming;
    for (const { count } of this.#waiting) missing += count;
    const helpers = this.#refills.size;
    if (missing > 0 ? helpers >= CONCURRENT_HELPERS : helpers > 0 || this.#free.length >= this.#batch / 2) return;
    const now = performance.now();
    const quick = now - this.#refilledAt < QUICK_REFILL_MS;
    this.#batch = Math.min(this.#mostBatch, quick ? this.#batch * 2 : FIRST_BATCH_PIPES);
    this.#refilledAt = now;
    const refill = this.#refill(this.#batch).then((made) => {
      this.#refills.delete(refill);
      // After a failure the next start tries again, not a loop.
      if (made || this.#waiting.length > 0) this.#refillIfLow();
    });
    this.#refills.add(refill);
  }

  /** Whether it brought a whole batch. Never rejects: a failure goes to those who wait. */
  async #refill(count: number): Promise<boolean> {
    this.#coming += count;
    try {
      return this.#settle(await this.#make(count));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#rejectWaiting(new WireError('spawnFailed', `no pipes for the streams: ${message}`));
      return false;
    } finally {
      this.#coming -= count;
    }
  }

  /** Asks the shells in turn and forgets those that cannot. */
  async #make(count: number): Promise<Batch> {
    for (;;) {
      const [shell] = this.#shells;
      if (shell === undefined) return { outcome: 'unsuitable' };
      const batch = await makePipes(shell, count);
      if (batch.outcome !== 'unsuitable') return batch;
      if (this.#proven) return { outcome: 'failed', code: 'EAGAIN' };
      this.#shells = this.#shells.filter((other) => other !== shell);
    }
  }

  #settle(batch: Batch): boolean {
    if (batch.outcome === 'unsuitable') {
      for (const waiter of this.#waiting.splice(0)) waiter.resolve(undefined);
      return false;
    }
    if (batch.outcome === 'made') {
      this.#proven = true;
      this.putBack(batch.pipes);
    }
    const code = batch.outcome === 'made' ? batch.cutBy : batch.code;
    if (code === undefined) return true;
    // Short of descriptors or processes: who waits is told, and what is left here helps the rest of the server.
    this.#rejectWaiting(startError(code));
    closePipes(this.#free.splice(0));
    return false;
  }

  #restartIdleTimer(): void {
    if (this.#idleTimer !== undefined) {
      this.#idleTimer.refresh();
      return;
    }
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = undefined;
      this.#batch = Math.min(FIRST_BATCH_PIPES, this.#mostBatch);
      closePipes(this.#free.splice(this.#idlePipes));
    }, this.#idleMs).unref();
  }
}

function stopping(): WireError {
  return new WireError('serverStopping', 'the server is shutting down');
}
