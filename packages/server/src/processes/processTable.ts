/** ProcessId → Process of one session: reserves ids before the fork, keeps ended processes for a while, remembers expired ids. */
import { limits, type ProcessId, WireError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { ProcessExit } from './eventLog.js';
import { Process, unknownProcess } from './process.js';

export interface ProcessTableOptions {
  readonly clock: Clock;
  readonly retainedBytesPerProcess: number;
  readonly exitedRetentionMs: number;
}

export class ProcessTable {
  readonly #options: ProcessTableOptions;
  readonly #processes = new Map<ProcessId, Process>();
  /** Closed processes in the order of their close, with what ends their retention. */
  readonly #closed = new Map<Process, () => void>();
  #closedBytes = 0;
  readonly #tombstones = new Map<ProcessId, ProcessExit | undefined>();

  constructor(options: ProcessTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#processes.size;
  }

  values(): IterableIterator<Process> {
    return this.#processes.values();
  }

  /** Takes the id in this tick. Throws WireError when it is taken. */
  reserve(id: ProcessId): Process {
    if (this.#processes.has(id)) {
      throw new WireError('duplicateProcess', `process ${id} already exists`, { field: 'processId' });
    }
    if (this.#tombstones.has(id)) {
      // A late read of the old process must never be answered by a new one.
      const message = `process ${id} already exists: it ended, and its id stays taken though its output is no longer kept`;
      throw new WireError('duplicateProcess', message, { field: 'processId' });
    }
    if (this.#processes.size >= limits.MAX_PROCESSES_PER_SESSION) {
      throw new WireError('tooManyProcesses', `the session holds ${this.#processes.size} processes`, {
        limit: limits.MAX_PROCESSES_PER_SESSION,
      });
    }
    const process = new Process({
      id,
      clock: this.#options.clock,
      logLimits: { bytes: this.#options.retainedBytesPerProcess, chunks: limits.RETAINED_CHUNKS_PER_PROCESS },
      onClosed: (closed) => this.#retain(closed),
    });
    this.#processes.set(id, process);
    return process;
  }

  /** Gives back the id of a start that failed. */
  free(process: Process): void {
    if (this.#processes.get(process.id) === process) this.#processes.delete(process.id);
    process.dispose();
  }

  find(id: string): Process | undefined {
    // The map's key type is a brand over string.
    return this.#processes.get(id as ProcessId);
  }

  /** Throws WireError when there is none. */
  get(id: string): Process {
    const process = this.find(id);
    if (process === undefined) throw this.#missing(id);
    return process;
  }

  /** Kills every group and forgets every id; returns what is to be reaped. */
  end(): Process[] {
    const ended = [...this.#processes.values()];
    for (const cancelRetention of this.#closed.values()) cancelRetention();
    this.#closed.clear();
    for (const process of ended) process.kill();
    this.#processes.clear();
    this.#tombstones.clear();
    return ended;
  }

  #missing(id: string): WireError {
    const exit = this.#tombstones.get(id as ProcessId);
    if (!this.#tombstones.has(id as ProcessId)) return unknownProcess(id);
    return new WireError('expiredProcess', `unknown process id ${id}: it ended and its output is no longer kept`, {
      ...(exit === undefined ? {} : { exitCode: exit.exitCode, signal: exit.signal ?? null }),
    });
  }

  #retain(process: Process): void {
    process.dispose();
    if (this.#processes.get(process.id) !== process) return;
    this.#keep(process);
    this.#closedBytes += process.log.retainedBytes;
    for (const oldest of this.#closed.keys()) {
      const tooMany = this.#closed.size > limits.EXITED_PROCESSES_PER_SESSION;
      if (!tooMany && this.#closedBytes <= limits.EXITED_BYTES_PER_SESSION) break;
      this.#expire(oldest);
    }
  }

  /** The clock of a process whose reader is still behind starts anew; the bounds by number and bytes hold all the same. */
  #keep(process: Process): void {
    const over = (): void => (process.beingRead ? this.#keep(process) : this.#expire(process));
    this.#closed.set(process, this.#options.clock.after(this.#options.exitedRetentionMs, over));
  }

  #expire(process: Process): void {
    this.#closed.get(process)?.();
    if (!this.#closed.delete(process)) return;
    process.expire();
    this.#closedBytes -= process.log.retainedBytes;
    this.#processes.delete(process.id);
    this.#tombstones.set(process.id, process.log.exited);
    if (this.#tombstones.size <= limits.TOMBSTONES_PER_SESSION) return;
    for (const oldest of this.#tombstones.keys()) {
      this.#tombstones.delete(oldest);
      return;
    }
  }
}
