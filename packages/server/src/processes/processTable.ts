/** ProcessId → Process of one session: reserves ids before the fork, keeps ended processes for a while, remembers expired ids. */
import { type ExitSummary, limits, type ProcessId, WireError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import { Process, unknownProcess } from './process.js';
import type { Spool } from './spool/spool.js';
import type { WindowBudget } from './windowBudget.js';
import type { StartRecord, StartWishes } from './startRecord.js';
import { exitSummary } from './summary.js';

/** How soon a process whose reader was behind is looked at again, at the earliest. */
const LOOK_AGAIN_MS = 1_000;

export interface ProcessTableOptions {
  readonly clock: Clock;
  readonly retainedBytesPerProcess: number;
  readonly exitedRetentionMs: number;
  /** What the windows of this session's processes share. */
  readonly windows?: WindowBudget | undefined;
  /** A spool for one process of this session; undefined where there can be none. */
  readonly openSpool?: ((changed: () => void) => Spool | undefined) | undefined;
}

/** A process that is no longer kept. */
export interface Tombstone {
  readonly digest: string;
  readonly exit: ExitSummary | undefined;
  /** Its last event: who has come that far has missed nothing. */
  readonly closedSeq: number | undefined;
  readonly released: boolean;
}

export class ProcessTable {
  readonly #options: ProcessTableOptions;
  readonly #processes = new Map<ProcessId, Process>();
  readonly #starts = new WeakMap<Process, StartRecord>();
  /** Closed processes in the order of their close, with what ends their retention. */
  readonly #closed = new Map<Process, () => void>();
  /** Closed processes whose streams others still hold; their descriptors live as long as the session. */
  readonly #draining = new Set<Process>();
  /** Expired processes whose end is still on its way to somebody. */
  readonly #leaving = new Set<Process>();
  readonly #tombstones = new Map<ProcessId, Tombstone>();

  constructor(options: ProcessTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#processes.size;
  }

  values(): IterableIterator<Process> {
    return this.#processes.values();
  }

  /** Output bytes in memory, of expired processes too as long as somebody is sent them. */
  get retainedBytes(): number {
    return retainedBytes(this.#processes.values()) + retainedBytes(this.#leaving);
  }

  /** Takes the id in this tick. Throws WireError when it is taken. */
  reserve(id: ProcessId, start: StartRecord, wishes: StartWishes): Process {
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
      lingerMs: wishes.lingerMs,
      detached: wishes.detached,
      openSpool: this.#options.openSpool,
      windows: this.#options.windows,
      onClosed: (closed) => this.#retain(closed),
      onFreed: (freed) => this.#leaving.delete(freed),
      onDrained: (drained) => {
        this.#draining.delete(drained);
        drained.dispose();
      },
    });
    this.#processes.set(id, process);
    this.#starts.set(process, start);
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

  startOf(process: Process): StartRecord {
    const start = this.#starts.get(process);
    if (start === undefined) throw new Error('the process is not of this table');
    return start;
  }

  tombstone(id: string): Tombstone | undefined {
    return this.#tombstones.get(id as ProcessId);
  }

  /** Forgets a closed process at once. Throws WireError when it has not closed, was released before, or is unknown. */
  release(id: string): void {
    const process = this.find(id);
    if (process === undefined) {
      if (this.tombstone(id)?.released === true) {
        throw new WireError('alreadyReleased', `process ${id} was released before`);
      }
      throw this.#missing(id);
    }
    if (process.state !== 'closed') {
      throw new WireError('processRunning', `process ${id} is ${process.state}; only a closed process can be released`);
    }
    this.#expire(process, true);
  }

  /** Kills every group and forgets every id; returns what is to be reaped. */
  end(): Process[] {
    const ended = [...this.#processes.values(), ...this.#draining];
    for (const process of [...this.#leaving, ...ended]) process.history.release();
    this.#leaving.clear();
    for (const cancelRetention of this.#closed.values()) cancelRetention();
    this.#closed.clear();
    this.#draining.clear();
    for (const process of ended) {
      process.kill();
      void process.history.close();
    }
    this.#processes.clear();
    this.#tombstones.clear();
    return ended;
  }

  #missing(id: string): WireError {
    const tombstone = this.tombstone(id);
    if (tombstone === undefined) return unknownProcess(id);
    const { exit, closedSeq, released } = tombstone;
    const why = released ? 'it was released' : 'it ended and its output is no longer kept';
    return new WireError('expiredProcess', `unknown process id ${id}: ${why}`, {
      ...(exit === undefined ? {} : { exit }),
      ...(closedSeq === undefined ? {} : { closedSeq }),
    });
  }

  #retain(process: Process): void {
    if (process.draining) this.#draining.add(process);
    else process.dispose();
    if (this.#processes.get(process.id) !== process) return;
    this.#keep(process);
    // Counted anew each time: windows shrink meanwhile.
    let bytes = retainedBytes(this.#closed.keys());
    for (const oldest of [...this.#closed.keys()]) {
      const tooMany = this.#closed.size > limits.EXITED_PROCESSES_PER_SESSION;
      if (!tooMany && bytes <= limits.EXITED_BYTES_PER_SESSION) break;
      bytes -= oldest.log.retainedBytes;
      this.#expire(oldest, false);
    }
  }

  /** The clock of a process whose reader is still behind starts anew; the bounds by number and bytes hold all the same. */
  #keep(process: Process): void {
    const look = (ms: number): void => {
      const over = (): void => (process.beingRead ? look(Math.max(ms, LOOK_AGAIN_MS)) : this.#expire(process, false));
      this.#closed.set(process, this.#options.clock.after(ms, over));
    };
    look(this.#options.exitedRetentionMs);
  }

  #expire(process: Process, released: boolean): void {
    this.#closed.get(process)?.();
    if (!this.#closed.delete(process)) return;
    this.#leaving.add(process);
    process.expire();
    this.#processes.delete(process.id);
    this.#tombstones.set(process.id, {
      digest: this.startOf(process).digest(),
      exit: exitSummary(process),
      closedSeq: process.log.closed?.seq,
      released,
    });
    if (this.#tombstones.size <= limits.TOMBSTONES_PER_SESSION) return;
    for (const oldest of this.#tombstones.keys()) {
      this.#tombstones.delete(oldest);
      return;
    }
  }
}

function retainedBytes(processes: Iterable<Process>): number {
  let bytes = 0;
  for (const { log } of processes) bytes += log.retainedBytes;
  return bytes;
}
