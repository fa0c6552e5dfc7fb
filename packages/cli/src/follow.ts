/** Passes the streams of a process through to our own until it ends or is left. */
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { type Client, isClientError, type ProcessEvent, type ProcessHandle } from '@exec-server/client';
import type { TerminalSize } from '@exec-server/protocol';
import { failureOfRun } from './clientFailures.js';
import { CommandError, ExitCode } from './exitCodes.js';
import { say } from './link.js';
import { enterRawMode, watchSize } from './ownTerminal.js';
import { pass, READER_GONE } from './pass.js';

export interface FollowOptions {
  /** Whether our stdin goes to the process. */
  readonly input: boolean;
  /** For a process on a terminal: the size it has. Keys are passed on as they are typed, and changes of our size. */
  readonly terminal?: { readonly size: TerminalSize | undefined } | undefined;
  /**
   * What a signal does, and the loss of the reader of our output: `forward` passes it on, or terminates the process;
   * `leave` ends the following.
   */
  readonly signals: 'forward' | 'leave';
  /** The command line that goes on with the process from here, where there is one. */
  readonly again?: (() => string) | undefined;
  /** A key that leaves the process, as a byte. */
  readonly detachKey?: number | undefined;
}

export interface Followed {
  /** The code this command ends with. */
  readonly exitCode: number;
  /** Whether it ended because it was told to leave, and the process may run on. */
  readonly left: boolean;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
type StopSignal = (typeof SIGNALS)[number];

export async function follow(client: Client, handle: ProcessHandle, options: FollowOptions): Promise<Followed> {
  const follower = new Follower(client, handle, options);
  try {
    return await follower.run();
  } catch (error) {
    throw isClientError(error) ? failureOfRun(error, options.again?.()) : error;
  } finally {
    follower.stop();
  }
}

class Follower {
  readonly #client: Client;
  readonly #handle: ProcessHandle;
  readonly #options: FollowOptions;
  readonly #events: AsyncIterableIterator<ProcessEvent, undefined>;
  readonly #stops: (() => void)[] = [];
  #exitCode: number = ExitCode.failure;
  #lost = false;
  #writeError: NodeJS.ErrnoException | undefined;
  /** The code to leave with. */
  #leaving: number | undefined;
  /** A signal waits for the connection to come back. */
  #signalWaits = false;

  constructor(client: Client, handle: ProcessHandle, options: FollowOptions) {
    this.#client = client;
    this.#handle = handle;
    this.#options = options;
    this.#events = handle.events();
    const { terminal, input } = options;
    for (const stream of [process.stdout, process.stderr]) {
      stream.on('error', this.#onWriteError);
      this.#stops.push(() => stream.off('error', this.#onWriteError));
    }
    for (const signal of SIGNALS) {
      const listener = (): void => this.#onSignal(signal);
      process.on(signal, listener);
      this.#stops.push(() => process.off(signal, listener));
    }
    if (terminal !== undefined) {
      this.#stops.push(watchSize(terminal.size, (size) => this.#resize(size)));
      if (input) this.#stops.push(enterRawMode());
    }
    if (input) void this.#passInput(process.stdin);
  }

  async run(): Promise<Followed> {
    for await (const event of this.#events) await this.#take(event);
    if (this.#writeError !== undefined)
      return { exitCode: codeOfWriteError(this.#writeError, this.#options), left: true };
    if (this.#leaving !== undefined) return { exitCode: this.#leaving, left: true };
    const exitCode = this.#lost && this.#exitCode === ExitCode.ok ? ExitCode.failure : this.#exitCode;
    return { exitCode, left: false };
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  async #take(event: ProcessEvent): Promise<void> {
    switch (event.type) {
      case 'output':
        if (this.#writeError === undefined) {
          await pass(event.stream === 'stderr' ? process.stderr : process.stdout, event.bytes);
        }
        break;
      case 'gap':
        this.#lost = true;
        say(
          `${event.bytes ?? 'some'} bytes of output are lost: events ${event.fromSeq} to ${event.throughSeq} are no longer kept by the server; what came after them follows`,
        );
        break;
      case 'exited':
        this.#exitCode = event.exitCode;
        break;
      case 'closed':
        break;
      default:
        event satisfies never;
    }
  }

  #leave(exitCode: number): void {
    this.#leaving ??= exitCode;
    // Never rejects.
    void this.#events.return?.();
  }

  readonly #onWriteError = (fault: NodeJS.ErrnoException): void => {
    if (this.#writeError !== undefined) return;
    this.#writeError = fault;
    if (this.#options.signals === 'leave') this.#leave(READER_GONE);
    // The command is of no use without its reader; a failure shows in the events.
    else this.#handle.terminate().catch(() => undefined);
  };

  /** Passes it on. While the connection is lost that has to wait; who asks a second time is let go. */
  #onSignal(signal: StopSignal): void {
    const code = 128 + constants.signals[signal];
    if (this.#options.signals === 'leave') {
      this.#leave(code);
      return;
    }
    const isLost = this.#client.state !== 'ready';
    if (isLost && this.#signalWaits) {
      say('left while the connection was lost; the server kills the command when the lease of its session is over');
      this.#leave(code);
      return;
    }
    this.#signalWaits = isLost;
    if (isLost) say(`the connection is lost; ${signal} reaches the command when it is back; repeat it to leave now`);
    this.#handle.signal(signal).catch(() => undefined);
  }

  #resize(size: TerminalSize): void {
    // The process may have just ended; a failed client shows in the events.
    this.#handle.resize(size).catch(() => undefined);
  }

  async #passInput(input: Readable): Promise<void> {
    const { detachKey } = this.#options;
    try {
      for await (const chunk of input) {
        // Nothing sets an encoding on stdin, so its chunks are bytes.
        const bytes = chunk as Uint8Array;
        // The loop goes on, for its end closes the terminal, which has to be restored first.
        if (this.#leaving !== undefined) continue;
        const key = detachKey === undefined ? -1 : bytes.indexOf(detachKey);
        if (key !== 0) await this.#handle.write(key === -1 ? bytes : bytes.subarray(0, key));
        if (key !== -1) this.#leave(ExitCode.ok);
      }
      if (this.#leaving === undefined) await this.#handle.end();
    } catch {
      // The command closed its stdin, ended, or is lost; its events tell the rest.
    }
  }
}

function codeOfWriteError({ code, message }: NodeJS.ErrnoException, { signals }: FollowOptions): number {
  if (code === 'EPIPE') return READER_GONE;
  const then = signals === 'forward' ? '; the command was terminated' : '';
  throw new CommandError(`the output of the command cannot be written (${message})${then}`);
}
