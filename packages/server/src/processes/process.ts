/**
 * One child from its reserved id to its close: feeds the event log, tells watchers, decides when its streams count as
 * ended. The only caller of `EventLog.append*`.
 */
import { type ExitReason, type ProcessId, type Seq, type StreamName, WireError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { ChildExit, OutputSource, SpawnedChild, TerminalControl } from '../host/child.js';
import type { CloseSummary, EventLog, LogLimits, ProcessExit } from './eventLog.js';
import { exitOf } from '../host/exitCodes.js';
import { Flow, type Progress } from './flow.js';
import { type DetachedPolicy, History, type HistoryOptions } from './history.js';
import { type StdinAnswer, StdinQueue, type StdinWrite, type WaitingWrite } from './stdinQueue.js';

/** How long a terminated process's streams are read on after its exit while a descendant still holds them. */
const TERMINATED_LINGER_MS = 1_000;
/** More than its pipes can hold: once as much was read after the exit, what comes is a descendant's. */
const TERMINATED_DRAIN_BYTES = 4 * 1024 * 1024;
/** How soon a close that waits for a slow reader looks again. */
const HELD_BACK_MS = 50;
/** How long counting the holders may put off a close. */
const HOLDER_COUNT_MS = 500;

export type ProcessState = 'starting' | 'running' | 'exited' | 'closed';

/** What is known of a process beside its events. */
export interface ProcessTimes {
  readonly startedAtMs: number;
  readonly exitedAtMs: number | undefined;
  readonly closedAtMs: number | undefined;
}

export interface ProcessOptions {
  readonly id: ProcessId;
  readonly clock: Clock;
  readonly logLimits: LogLimits;
  /** How long streams may stay open after the exit; undefined: as long as somebody holds them. */
  readonly lingerMs?: number | undefined;
  /** What happens to output while nobody is attached. Default: it goes to the spool once memory is full. */
  readonly detached?: DetachedPolicy | undefined;
  readonly openSpool?: HistoryOptions['openSpool'];
  readonly windows?: HistoryOptions['windows'];
  /** Called once, when the process closed. */
  readonly onClosed: (process: Process) => void;
  /** Called once when nobody holds the streams of a closed process any more, if somebody did at its close. */
  readonly onDrained?: (process: Process) => void;
  /** Called when it has expired and nobody is sent anything of it any more. */
  readonly onFreed?: (process: Process) => void;
}

export class Process {
  readonly id: ProcessId;
  readonly history: History;
  readonly log: EventLog;
  readonly #options: ProcessOptions;
  readonly #flow: Flow;
  #child: SpawnedChild | undefined;
  #stdin = new StdinQueue(undefined);
  #exit: ProcessExit | undefined;
  #openOutputs = 0;
  #endReason: ExitReason = 'exited';
  #terminated = false;
  #expired = false;
  readonly #startedAtMs: number;
  #exitedAtMs: number | undefined;
  #closedAtMs: number | undefined;
  #cancelLinger: (() => void) | undefined;
  readonly #watchers = new Set<() => void>();
  /** Settles when the start was decided, either way. */
  readonly started: Promise<void>;
  #settleStarted: () => void = () => {};

  constructor(options: ProcessOptions) {
    this.id = options.id;
    this.#options = options;
    this.#startedAtMs = options.clock.timeOfDay();
    const detached = options.detached ?? 'spool';
    this.history = new History({
      logLimits: options.logLimits,
      detached,
      openSpool: options.openSpool,
      windows: options.windows,
      attached: () => this.#flow.attached,
      deliveredSeq: () => this.#flow.releasedSeq,
      changed: () => this.#flow.adjust(),
    });
    this.log = this.history.log;
    this.#flow = new Flow(this.history, detached, options.clock);
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

  /** Names the leader for good; undefined while starting, and where the host cannot tell. */
  get leader(): { readonly pid: number; readonly startTime: number } | undefined {
    const startTime = this.#child?.startTime;
    return this.#child === undefined || startTime === undefined ? undefined : { pid: this.#child.pid, startTime };
  }

  get terminal(): TerminalControl | undefined {
    return this.#child?.terminal;
  }

  get times(): ProcessTimes {
    return { startedAtMs: this.#startedAtMs, exitedAtMs: this.#exitedAtMs, closedAtMs: this.#closedAtMs };
  }

  /** Whether it was told to end; during a start it means: do not fork any more. */
  get terminated(): boolean {
    return this.#terminated;
  }

  /** Seq through which the last attached reader had everything. */
  get lastDeliveredSeq(): Seq {
    return this.#flow.lastDeliveredSeq;
  }

  get stdinAcceptedBytes(): number {
    return this.#stdin.acceptedBytes;
  }

  get stdinQueuedBytes(): number {
    return this.#stdin.queuedBytes;
  }

  get expired(): boolean {
    return this.#expired;
  }

  /** Whether an attached reader has not got everything yet. */
  get beingRead(): boolean {
    return this.#flow.beingRead;
  }

  /** Whether its streams are held back, so that its writes block. */
  get heldBack(): boolean {
    return this.#flow.paused;
  }

  /** Whether others hold its streams although it counts as closed; what they write is read and dropped. */
  get draining(): boolean {
    return this.log.closed !== undefined && this.#openOutputs > 0;
  }

  /** The child was forked. */
  begin(child: SpawnedChild): void {
    this.#child = child;
    this.#stdin = new StdinQueue(child.stdin);
    this.#openOutputs = child.outputs.length;
    this.#flow.control(child.outputs);
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
    return () => {
      this.#watchers.delete(watcher);
      this.#freeIfUnread();
    };
  }

  /** Tells how far the attached reader is; undefined when it is gone, which lets the child run on. */
  delivered(progress: Progress | undefined): void {
    this.#flow.delivered(progress);
  }

  /** The attached reader, which acknowledges nothing, has read behind this cursor: what follows is kept for it for a while. */
  readBehind(afterSeq: Seq): void {
    this.#flow.readBehind(afterSeq);
  }

  writeStdin(write: StdinWrite): StdinAnswer | WaitingWrite {
    return this.#stdin.write(write);
  }

  /** Signals a running process, on a terminal its foreground group, else its group; `gone` when it has exited. */
  signal(name: string): 'delivered' | 'gone' {
    if (this.#child === undefined || this.log.exited !== undefined) return 'gone';
    return this.#child.terminal?.signalForeground(name) ?? this.#child.signalGroup(name);
  }

  /** Signals the group of a running process. */
  signalGroup(name: string): 'delivered' | 'gone' {
    if (this.#child === undefined || this.log.exited !== undefined) return 'gone';
    return this.#child.signalGroup(name);
  }

  /** It is being ended for this reason, which its exit will tell. Returns whether it had not exited. */
  ending(reason: Exclude<ExitReason, 'exited'>): boolean {
    if (this.log.exited !== undefined) return false;
    this.#endReason = reason;
    this.#terminated = true;
    return true;
  }

  /** KILL to the group at once. What the process wrote before is still read. Returns whether it had not exited. */
  terminate(reason: Exclude<ExitReason, 'exited'> = 'terminated'): boolean {
    if (!this.ending(reason)) return false;
    this.#child?.signalGroup('SIGKILL');
    return true;
  }

  /** As `terminate`, where nobody takes an error: a group the host does not let us signal is left to end by itself. */
  kill(reason: Exclude<ExitReason, 'exited'> = 'terminated'): void {
    try {
      this.terminate(reason);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }

  /** Its output is no longer kept: whoever has nothing left to push of it lets go of it. */
  expire(): void {
    this.#expired = true;
    void this.history.close();
    this.#tell();
    this.#freeIfUnread();
  }

  /** Frees the streams of a closed process, and of one whose session ended; its history stays readable until `expire`. */
  dispose(): void {
    this.#cancelLinger?.();
    this.#stdin.closed();
    for (const output of this.#child?.outputs ?? []) output.destroy();
  }

  #read(output: OutputSource): void {
    const stream: StreamName = output.name;
    output.start({
      bytes: (bytes) => {
        if (bytes.length === 0 || this.log.closed !== undefined) return;
        this.history.append(stream, bytes);
        this.#tell();
        this.#flow.adjust();
      },
      ended: () => {
        this.#openOutputs -= 1;
        if (this.#openOutputs > 0) return;
        if (this.log.closed === undefined) this.#closeIfExited({ reason: 'ended', holders: undefined });
        else this.#options.onDrained?.(this);
      },
    });
  }

  #exited(exit: ChildExit): void {
    this.#exit = exitOf(exit, this.#endReason);
    this.#exitedAtMs = this.#options.clock.timeOfDay();
    this.log.appendExited(this.#exit);
    this.#stdin.closed();
    this.#tell();
    if (this.#openOutputs === 0) this.#closeIfExited({ reason: 'ended', holders: undefined });
    else this.#linger();
  }

  /** Descendants may hold the streams for ever; what the process itself wrote is delivered first in any case. */
  #linger(): void {
    const { lingerMs } = this.#options;
    const atExit = this.log.totalBytes;
    const wait = (ms: number, seen: number): void => {
      this.#cancelLinger = this.#options.clock.after(ms, () => {
        // A reader that is behind holds back the last bytes of the process itself.
        if (this.#flow.paused) return wait(HELD_BACK_MS, this.log.totalBytes);
        const drained = this.log.totalBytes === seen || this.log.totalBytes - atExit >= TERMINATED_DRAIN_BYTES;
        if (lingerMs === undefined && !drained) return wait(TERMINATED_LINGER_MS, this.log.totalBytes);
        this.#closeHeldOpen();
      });
    };
    if (this.#terminated) wait(Math.min(lingerMs ?? TERMINATED_LINGER_MS, TERMINATED_LINGER_MS), atExit);
    else if (lingerMs !== undefined) wait(lingerMs, atExit);
  }

  #closeHeldOpen(): void {
    const close = (holders?: number): void => this.#closeIfExited({ reason: 'heldOpen', holders });
    const counting = this.#child?.countHolders?.();
    if (counting === undefined) return close();
    // A count that failed or takes long, as on a busy host, is left out.
    this.#cancelLinger = this.#options.clock.after(HOLDER_COUNT_MS, close);
    counting.then(close, () => close());
  }

  #closeIfExited(summary: CloseSummary): void {
    if (this.#exit === undefined || this.log.closed !== undefined) return;
    this.#cancelLinger?.();
    this.#closedAtMs = this.#options.clock.timeOfDay();
    this.log.appendClosed(summary);
    this.#tell();
    this.#options.onClosed(this);
  }

  /** Until then memory is counted for those who are still being sent its end. */
  #freeIfUnread(): void {
    if (!this.#expired || this.#watchers.size > 0) return;
    this.history.release();
    this.#options.onFreed?.(this);
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** The error for a process that is not there. */
export function unknownProcess(id: string): WireError {
  return new WireError('unknownProcess', `unknown process id ${id}`);
}
