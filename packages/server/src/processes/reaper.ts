/**
 * What must not outlive the server: lists the groups of running children and temporary files with the guard, takes groups
 * off when they are empty, and sweeps up behind sessions that are over.
 */
import { type Clock, holding } from '../clock.js';
import type { BytePath } from '../paths.js';
import type { Process } from './process.js';
import { errnoCode } from '../host/startErrors.js';
import { createGuard, type Guard } from '../host/tree/guard.js';
import { sweepLife } from '../host/tree/sweep.js';

/** How often a group that outlived its leader is looked at. */
const LOOK_AGAIN_MS = 5_000;

export interface ReaperOptions {
  readonly clock: Clock;
  /** Begins the marks of this server. */
  readonly life: string;
  /** False: children outlive a server that is killed. */
  readonly guard: boolean;
  readonly onUnguarded: (reason: string) => void;
  /** What a session left behind may still run. */
  readonly onSweepFailed: (error: unknown) => void;
  /** Instead of the host's; for tests. */
  readonly sweepLife?: typeof sweepLife;
}

export class Reaper {
  readonly #clock: Clock;
  readonly #guard: Guard | undefined;
  readonly #sweepLife: typeof sweepLife;
  readonly #onSweepFailed: (error: unknown) => void;
  readonly #sweeps = new Set<Promise<void>>();
  #closed = false;

  constructor(options: ReaperOptions) {
    this.#clock = options.clock;
    this.#sweepLife = options.sweepLife ?? sweepLife;
    this.#onSweepFailed = options.onSweepFailed;
    if (options.guard) this.#guard = createGuard({ life: options.life, onUnavailable: options.onUnguarded });
  }

  get guardState(): Guard['state'] {
    return this.#guard?.state ?? 'unavailable';
  }

  /** To be called once the child runs. */
  watch(process: Process): void {
    const { leader } = process;
    if (leader === undefined || this.#guard === undefined) return;
    this.#guard.add(leader.pid, leader.startTime);
    const stop = process.watch(() => {
      if (process.log.exited === undefined) return;
      stop();
      this.#takeOff(leader.pid);
    });
  }

  /** Lists temporary files, as `Guard.addTemps`. */
  listTemps(key: number, begins: BytePath): void {
    this.#guard?.addTemps(key, begins);
  }

  unlistTemps(key: number): void {
    this.#guard?.removeTemps(key);
  }

  /** Ends what still carries a mark of this session. */
  sweep(life: string): void {
    const sweep = this.#sweepLife(life, holding(this.#clock))
      .catch(this.#onSweepFailed)
      .finally(() => this.#sweeps.delete(sweep));
    this.#sweeps.add(sweep);
  }

  /** Settles when every sweep is done; the guard is ended and kills nothing. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#sweeps);
    this.#closed = true;
    await this.#guard?.close();
  }

  /** A group lives on while one of its members does; only when it is empty may its number go to strangers. */
  #takeOff(pid: number): void {
    if (this.#closed) return;
    if (isEmpty(pid)) this.#guard?.remove(pid);
    else this.#clock.after(LOOK_AGAIN_MS, () => this.#takeOff(pid));
  }
}

function isEmpty(group: number): boolean {
  try {
    process.kill(-group, 0);
    return false;
  } catch (error) {
    return errnoCode(error) === 'ESRCH';
  }
}
