/** Children on a terminal: start, size, foreground group, exit. */
import { constants } from 'node:os';
import { WireError } from '@exec-server/protocol';
import type { ChildExit, OutputSource, SpawnedChild, SpawnRequest, StdinSink, TerminalControl } from '../child.js';
import { descriptorsLeft } from '../hostLimits.js';
import { checkStart } from '../preflight.js';
import { ProcessGroup } from '../processGroup.js';
import { errnoCode, startError } from '../startErrors.js';
import { readStat } from '../tree/procfs.js';
import { terminalCommand, terminalEnvironment } from './command.js';
import { withoutGaps } from './masters.js';
import { type ForkedTerminal, loadPty, type PtyImporter, type PtyNative } from './native.js';
import { isGroupOfSession, readProcStat } from './procStat.js';
import { PtyInput } from './ptyInput.js';
import { PtyMaster, type TerminalSize } from './ptyMaster.js';
import { PtyOutput } from './ptyOutput.js';
import { failedExec, forkError, programRuns } from './startup.js';

export type { TerminalSize } from './ptyMaster.js';

/** `stdin` is not looked at: a terminal always takes input. `terminal` defaults to 80 columns, 24 rows. */
export type PtyRequest = SpawnRequest;

const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 };
const MOST_CELLS = 65_535;
/** Master and slave, the slave held open, and one more for a moment. */
const TERMINAL_DESCRIPTORS = 4;

/** Throws `invalidParams`, naming the field, unless both are integers from 1 to 65535. */
function checkSize(size: TerminalSize): void {
  for (const field of ['cols', 'rows'] as const) {
    const cells = size[field];
    if (Number.isInteger(cells) && cells >= 1 && cells <= MOST_CELLS) continue;
    throw new WireError('invalidParams', `size.${field} must be an integer from 1 to ${MOST_CELLS}`, {
      field: `size.${field}`,
    });
  }
}

/**
 * Starts a program on a terminal of its own; on return it runs. Rejects as `Platform.spawn` does, and with
 * `terminalUnavailable`. `cancelled` is asked right before the fork. `importer` is for tests.
 */
export async function spawnPty(
  request: PtyRequest,
  cancelled?: () => boolean,
  importer?: PtyImporter,
): Promise<PtyChild> {
  const size = request.terminal ?? DEFAULT_SIZE;
  checkSize(size);
  const native = await loadPty(importer);
  const env = terminalEnvironment(request.env);
  const program = checkStart({ ...request, env });
  const { file, args } = terminalCommand({ ...request, env }, program);
  if (cancelled?.() === true) throw new WireError('startCancelled', 'the start was cancelled');
  if (!descriptorsLeft(TERMINAL_DESCRIPTORS)) throw startError('EMFILE');
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const child = forkChild(native, (onExit) =>
    native.fork(file, args, variables, request.cwd, size.cols, size.rows, -1, -1, false, '', onExit),
  );
  if (await programRuns(child.pid, () => child.exit !== undefined)) return child;
  const error = await failedExec(child.exit?.code ?? null, child.peek(), program, request.cwd);
  if (error === undefined) return child;
  for (const output of child.outputs) output.destroy();
  throw error;
}

type NativeExit = (code: number, signal: number) => void;

function forkChild(native: PtyNative, fork: (onExit: NativeExit) => ForkedTerminal): PtyChild {
  let child: PtyChild | undefined;
  const onExit: NativeExit = (code, signal) => child?.exited(toExit(code, signal));
  let terminal: ForkedTerminal;
  try {
    terminal = withoutGaps(() => fork(onExit));
  } catch {
    // The addon's error says only that it failed.
    throw forkError();
  }
  try {
    child = new PtyChild(terminal.pid, new PtyMaster(native, terminal));
    return child;
  } catch (error) {
    killFork(terminal.pid);
    throw startError(errnoCode(error) ?? 'EIO');
  }
}

/** A child that may not have its group yet. The addon reaps it. */
function killFork(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** The signal first: a signal death has code 0 beside it. A signal without a name is told as its code. */
function toExit(code: number, signal: number): ChildExit {
  if (signal === 0) return { code, signal: null };
  const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
  return name === undefined ? { code: 128 + signal, signal: null } : { code: null, signal: name };
}

export class PtyChild implements SpawnedChild {
  readonly pid: number;
  readonly startTime: number | undefined;
  readonly outputs: readonly OutputSource[];
  readonly stdin: StdinSink;
  readonly #master: PtyMaster;
  readonly #output: PtyOutput;
  readonly #group: ProcessGroup;
  #exit: ChildExit | undefined;
  #onExit: ((exit: ChildExit) => void)[] = [];

  constructor(pid: number, master: PtyMaster) {
    this.pid = pid;
    this.#master = master;
    this.#output = new PtyOutput(master);
    this.outputs = [this.#output];
    this.stdin = new PtyInput(master);
    this.#group = new ProcessGroup(pid);
    // The addon reaps in a thread of its own and may have done so: then the server's own start stands in. No process of the
    // tree is older, and a leader that is gone is not looked for by its time.
    this.startTime = (readStat(pid) ?? readStat(process.pid))?.startTime;
  }

  get terminal(): TerminalControl {
    return this;
  }

  get exit(): ChildExit | undefined {
    return this.#exit;
  }

  onExit(listener: (exit: ChildExit) => void): void {
    const exit = this.#exit;
    if (exit === undefined) this.#onExit.push(listener);
    else queueMicrotask(() => listener(exit));
  }

  /** The leader's group: jobs of a shell with job control have groups of their own. */
  signalGroup(signal: string): 'delivered' | 'gone' {
    return this.#group.signal(signal);
  }

  /** The group that has the terminal, which a shell gives to the job it runs; undefined after the exit. */
  foregroundGroup(): number | undefined {
    return this.#exit === undefined ? readProcStat(this.pid)?.foreground : undefined;
  }

  /** Signals the foreground group; the leader's where there is none that is provably of this terminal. */
  signalForeground(signal: string): 'delivered' | 'gone' {
    const group = this.foregroundGroup();
    if (group === undefined || group === this.pid || !isGroupOfSession(group, this.pid))
      return this.signalGroup(signal);
    return new ProcessGroup(group).signal(signal);
  }

  /** The kernel sends SIGWINCH to the foreground group. Throws `invalidParams`, or `processEnded` after the exit. */
  resize(size: TerminalSize): void {
    checkSize(size);
    if (this.#exit !== undefined || !this.#master.open) {
      throw new WireError('processEnded', 'the process has exited; its terminal has no size any more');
    }
    this.#master.resize(size);
  }

  /** First output of a child that has exited, before delivery starts. */
  peek(): Uint8Array {
    return this.#output.peek();
  }

  /** To be called when the child was reaped. Input stops first, output that is left is delivered, then the exit told. */
  exited(exit: ChildExit): void {
    this.#exit = exit;
    this.#group.leaderExited();
    this.stdin.destroy();
    this.#output.leaderExited();
    for (const listener of this.#onExit.splice(0)) listener(exit);
  }
}
