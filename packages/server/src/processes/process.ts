/**
 * One child from its reserved id to its close: feeds the event log, tells watchers, holds the child back while an attached
 * reader is behind. The only caller of `EventLog.append*`.
 */
import { limits, type ProcessId, type Seq, type StreamName, WireError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { ChildExit, OutputSource, SpawnedChild } from './child.js';
import { EventLog, type LogLimits, type ProcessExit } from './eventLog.js';
import { exitOf } from './exitCodes.js';
import { type StdinAnswer, StdinQueue, type StdinWrite, type WaitingWrite } from './stdinQueue.js';

/** How long a terminated process's streams are read on after its exit while a descendant still holds them. */
const TERMINATED_LINGER_MS = 1_000;
/** More than its pipes can hold: once as much was read after the exit, what comes is a descendant's. */
const TERMINATED_DRAIN_BYTES = 4 * 1024 * 1024;
/** Unsent events at which streams are paused: tiny chunks fill the window by number long before they do by bytes. */
const PAUSE_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 2;
const RESUME_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 4;

export type ProcessState = 'starting' | 'running' | 'exited' | 'closed';

export interface ProcessOptions {
  readonly id: ProcessId;
  readonly clock: Clock;
  readonly logLimits: LogLimits;
  /** Called once, when the process closed. */
  readonly onClosed: (process: Process) => void;
}

export class Process {
  readonly id: ProcessId;
  readonly log: EventLog;
  readonly #options: ProcessOptions;
  #child: SpawnedChild | undefined;
  #stdin = new StdinQueue(undefined);
  #exit: ProcessExit | undefined;
  #openOutputs = 0;
  #terminated = false;
  #expired = false;
  #cancelLinger: (() => void) | undefined;
  readonly #watchers = new Set<() => void>();
  /** Seq through which the attached reader has everything; undefined while nobody is attached. */
  #deliveredSeq: Seq | undefined;
  /** Seq through which everything was handed to the attached reader's connection. */
  #sentSeq: Seq = 0;
  /** The last known `#deliveredSeq`, kept over a detach. */
  #lastDeliveredSeq: Seq = 0;
  #paused = false;
  /** Settles when the start was decided, either way. */
  readonly started: Promise<void>;
  #settleStarted: () => void = () => {};

  constructor(options: ProcessOptions) {
    this.id = options.id;
    this.#options = options;
    this.log = new EventLog(options.logLimits);
    this.started = new Promise((resolve) => {
      this.#settleStarted = resolve;
    });
  }

  get state(): ProcessState {
    if (this.log.closed !== undefined) return 'closed';
    if (this.log.exited !== undefined) return 'exited';
    return this.#child === undefined ? 'starting' : 'running';
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether `terminate` came; during a start it means: do not fork any more. */
  get terminated(): boolean {
    return this.#terminated;
  }

  /** Seq through which the last attached reader had everything. */
  get lastDeliveredSeq(): Seq {
    return this.#lastDeliveredSeq;
  }

  get stdinAcceptedBytes(): number {
    return this.#stdin.acceptedBytes;
  }

  get stdinQueuedBytes(): number {
    return this.#stdin.queuedBytes;
  }

  /** The child was forked. */
  begin(child: SpawnedChild): void {
    this.#child = child;
    this.#stdin = new StdinQueue(child.stdin);
    this.#openOutputs = child.outputs.length;
    for (const output of child.outputs) this.#read(output);
    child.onExit((exit) => this.#exited(exit));
    this.#settleStarted();
    if (this.#terminated) this.kill();
  }

  /** The start failed; nothing was forked. */
  fail(): void {
    this.#settleStarted();
  }

  /** Calls `watcher` after each event. The returned function ends it. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /**
   * Tells how far the attached reader is, and through which seq everything is on its way to it; undefined when it is gone,
   * which lets the child run on.
   */
  delivered(seq: Seq | undefined, sentSeq: Seq = seq ?? 0): void {
    this.#deliveredSeq = seq;
    this.#sentSeq = sentSeq;
    if (seq !== undefined) this.#lastDeliveredSeq = seq;
    this.#adjustFlow();
  }

  writeStdin(write: StdinWrite): StdinAnswer | WaitingWrite {
    return this.#stdin.write(write);
  }

  /** Signals the group of a running process; `gone` when it has exited. */
  signal(name: string): 'delivered' | 'gone' {
    if (this.#child === undefined || this.log.exited !== undefined) return 'gone';
    return this.#child.signalGroup(name);
  }

  /** KILL to the group at once. What the process wrote before is still read. Returns whether it had not exited. */
  terminate(): boolean {
    if (this.log.exited !== undefined) return false;
    this.#terminated = true;
    this.#child?.signalGroup('SIGKILL');
    return true;
  }

  /** As `terminate`, where nobody takes an error: a group the host does not let us signal is left to end by itself. */
  kill(): void {
    try {
      this.terminate();
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }

  /** Its output is no longer kept: whoever has nothing left to push of it lets go of it. */
  expire(): void {
    this.#expired = true;
    this.#tell();
  }

  get expired(): boolean {
    return this.#expired;
  }

  /** Whether an attached reader has not got everything yet. */
  get beingRead(): boolean {
    return this.#deliveredSeq !== undefined && this.#deliveredSeq < this.log.nextSeq - 1;
  }

  /** Frees everything of a closed process, or of one whose session ended. */
  dispose(): void {
    this.#cancelLinger?.();
    this.#stdin.closed();
    for (const output of this.#child?.outputs ?? []) output.destroy();
  }

  #read(output: OutputSource): void {
    const stream: StreamName = output.name;
    output.start({
      bytes: (bytes) => {
        if (bytes.length === 0) return;
        this.log.appendOutput(stream, bytes);
        this.#tell();
        this.#adjustFlow();
      },
      ended: () => {
        this.#openOutputs -= 1;
        this.#closeIfDone();
      },
    });
  }

  #exited(exit: ChildExit): void {
    this.#exit = exitOf(exit);
    this.log.appendExited(this.#exit);
    this.#stdin.closed();
    this.#tell();
    this.#closeIfDone();
    if (this.#terminated) this.#linger(this.log.totalBytes);
  }

  /** A terminated process does not wait for descendants that outlived the kill; bytes already written are read first. */
  #linger(atExit: number): void {
    if (this.log.closed !== undefined) return;
    const before = this.log.totalBytes;
    this.#cancelLinger = this.#options.clock.after(TERMINATED_LINGER_MS, () => {
      const drained = this.log.totalBytes === before || before - atExit >= TERMINATED_DRAIN_BYTES;
      if (this.#paused || !drained) this.#linger(atExit);
      else for (const output of this.#child?.outputs ?? []) output.destroy();
    });
  }

  #closeIfDone(): void {
    if (this.#openOutputs > 0 || this.#exit === undefined || this.log.closed !== undefined) return;
    this.#cancelLinger?.();
    this.log.appendClosed();
    this.#tell();
    this.#options.onClosed(this);
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher();
  }

  #adjustFlow(): void {
    const delivered = this.#deliveredSeq;
    const behind = delivered === undefined ? 0 : this.log.totalBytes - (this.log.bytesThrough(delivered) ?? 0);
    const unsent = delivered === undefined ? 0 : this.log.nextSeq - 1 - this.#sentSeq;
    if (!this.#paused && (behind >= limits.PAUSE_PROCESS_BYTES || unsent >= PAUSE_EVENTS)) this.#setPaused(true);
    else if (this.#paused && behind <= limits.RESUME_PROCESS_BYTES && unsent <= RESUME_EVENTS) this.#setPaused(false);
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused;
    for (const output of this.#child?.outputs ?? []) {
      if (paused) output.pause();
      else output.resume();
    }
  }
}

/** The error for a process that is not there. */
export function unknownProcess(id: string): WireError {
  return new WireError('unknownProcess', `unknown process id ${id}`);
}
