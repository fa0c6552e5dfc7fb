/** The output of a process for who looks at it now and then: read all the time, kept within a bound, handed over once. */
import { clampTimerMs, type StreamName } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import { ClientError, toClientError } from '../errors.js';
import { type GapEvent, lastSeqOf, type OutputEvent, type ProcessEvent } from '../events.js';
import { onAbort } from '../signals.js';
import { BothEnds } from './bothEnds.js';
import type { ExitStatus } from './handleOptions.js';

/** What one look may hold unless the caller says otherwise. */
const MAX_BYTES = 64 * 1024;
/** What it may hold at most: it is held in memory, and handed over as one string, of which hosts take 512 MiB at most. */
const MOST_BYTES = 256 * 1024 ** 2;

/** How output is collected. */
export interface CollectOptions {
  /**
   * Bytes of UTF-8 that one look hands over, and that are held in between; of more there are the beginning and the end. Default
   * 65,536, at most 256 MiB, else INVALID_ARGUMENT.
   */
  readonly maxBytes?: number | undefined;
  /** Begin after this event. Default: where the handle begins, which is the first event for a started process. */
  readonly afterSeq?: number | undefined;
}

/** How long a look waits. */
export interface LookOptions {
  /** In ms. Default 0: for what is about to be handed over, and no longer. */
  readonly waitMs?: number | undefined;
  /** Ends the waiting, with ABORTED; what there is stays for the next look. */
  readonly signal?: AbortSignal | undefined;
  /** `closed` waits for the end of the process and its streams; `output` for the first new output as well. Default `closed`. */
  readonly until?: 'closed' | 'output' | undefined;
}

/** What came since the last look. */
export interface OutputLook {
  /**
   * stdout and stderr as they came, as UTF-8; bad bytes become U+FFFD. Where something is missing it says so in a line of its
   * own: `[1234 bytes left out]`, `[events 5 to 9 are lost]`.
   */
  readonly text: string;
  /** Bytes left out in the middle, to stay within `maxBytes`. */
  readonly omittedBytes: number;
  /** Events that the server no longer had. */
  readonly lostEvents: number;
  /** The last event that was taken in: pass it to `attach` to go on behind what the looks so far have had. */
  readonly cursor: number;
  /** False once the process has exited, its streams have ended, and this look has the last of its output. */
  readonly running: boolean;
  /** How the process ended, once `running` is false; undefined as well where its end lies before the cursor of the handle. */
  readonly exit: ExitStatus | undefined;
}

/** Throws INVALID_ARGUMENT for what cannot be held. */
export function boundOf({ maxBytes = MAX_BYTES }: CollectOptions): number {
  if (Number.isSafeInteger(maxBytes) && maxBytes >= 0 && maxBytes <= MOST_BYTES) return maxBytes;
  const message = `maxBytes cannot be used: ${maxBytes} is no whole number from 0 to ${MOST_BYTES}; nothing was collected`;
  throw new ClientError('INVALID_ARGUMENT', message, { argument: 'maxBytes' });
}

/** Where the output comes from. */
export interface OutputSource {
  /** Where the events begin. */
  readonly afterSeq: number;
  readonly events: AsyncIterableIterator<ProcessEvent, undefined>;
  /** How the process ended, where that is known. */
  readonly exit: () => ExitStatus | undefined;
  readonly clock: Clock;
}

/**
 * Made by `ProcessHandle.collect`. It takes the output as it comes, so that a process never waits for who looks, and holds
 * `maxBytes` of it at most.
 */
export class OutputLooks {
  readonly #source: OutputSource;
  readonly #ends: BothEnds;
  readonly #decoders = new Map<StreamName, InstanceType<typeof TextDecoder>>();
  #lostEvents = 0;
  #cursor: number;
  #isOver = false;
  /** Why nothing more comes although the process may run on. */
  #failure: ClientError | undefined;
  /** Called at each event; those of looks that wait. */
  readonly #waiting = new Set<() => void>();

  /** @internal */
  constructor(source: OutputSource, maxBytes: number) {
    this.#source = source;
    this.#cursor = source.afterSeq;
    this.#ends = new BothEnds(maxBytes);
    void this.#follow();
  }

  /**
   * What came since the last look. Output is handed over once, to one look. When the client fails or is closed, what there
   * was before is handed over first; the look after that rejects with the failure.
   */
  async look({ waitMs = 0, until = 'closed', signal }: LookOptions = {}): Promise<OutputLook> {
    const isDue = (): boolean => this.#isOver || (until === 'output' && !this.#isEmpty);
    if (signal?.aborted === true) throw aborted(signal.reason);
    // Without waiting too a turn passes where there is nothing: a loop of looks lets output come.
    if (isDue() || (!(waitMs > 0) && !this.#isEmpty)) return this.#handOver();
    return await this.#wait(isDue, waitMs, signal);
  }

  /**
   * Takes nothing more of the output, which then counts as taken; the process goes on. Once what there was before is handed over,
   * looks reject with ABORTED: they would never see the end.
   */
  async stop(): Promise<void> {
    if (!this.#isOver) this.#failure ??= stopped();
    await this.#source.events.return?.();
  }

  get #isEmpty(): boolean {
    return this.#ends.isEmpty && this.#lostEvents === 0;
  }

  async #handOver(): Promise<OutputLook> {
    if (this.#failure !== undefined && this.#isEmpty) throw this.#failure;
    const lostEvents = this.#lostEvents;
    this.#lostEvents = 0;
    const running = !this.#isOver || this.#failure !== undefined;
    const exit = running ? undefined : this.#source.exit();
    return { ...this.#ends.take(), lostEvents, cursor: this.#cursor, running, exit };
  }

  async #follow(): Promise<void> {
    try {
      for await (const event of this.#source.events) {
        this.#take(event);
        this.#cursor = lastSeqOf(event);
        this.#tell();
      }
    } catch (error) {
      this.#failure ??= toClientError(error, 'PROTOCOL_VIOLATION', 'the output could not be read');
    }
    for (const decoder of this.#decoders.values()) this.#ends.add(decoder.decode());
    this.#isOver = true;
    this.#tell();
  }

  #take(event: ProcessEvent): void {
    switch (event.type) {
      case 'output':
        this.#takeOutput(event);
        break;
      case 'gap':
        this.#takeGap(event);
        break;
      case 'exited':
      case 'closed':
        break;
      default:
        event satisfies never;
    }
  }

  #takeOutput({ stream, bytes }: OutputEvent): void {
    let decoder = this.#decoders.get(stream);
    if (decoder === undefined) this.#decoders.set(stream, (decoder = new TextDecoder('utf-8', { ignoreBOM: true })));
    this.#ends.add(decoder.decode(bytes, { stream: true }));
  }

  #takeGap({ fromSeq, throughSeq }: GapEvent): void {
    // A character that began before the gap does not go on behind it.
    for (const decoder of this.#decoders.values()) this.#ends.add(decoder.decode());
    this.#ends.add(`\n[events ${fromSeq} to ${throughSeq} are lost]\n`);
    this.#lostEvents += throughSeq - fromSeq + 1;
  }

  #tell(): void {
    for (const told of this.#waiting) told();
  }

  /** What there is once it is due or the time is over. Taken at once: of several looks that wait the others wait on. */
  #wait(isDue: () => boolean, waitMs: number, signal: AbortSignal | undefined): Promise<OutputLook> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(look);
        forget();
        cancel();
      };
      const done = (): void => {
        leave();
        resolve(this.#handOver());
      };
      const giveUp = (): void => {
        leave();
        reject(aborted(signal?.reason));
      };
      const look = (): void => {
        if (isDue()) done();
      };
      const cancel = this.#source.clock.timer(clampTimerMs(waitMs), done);
      const forget = onAbort(signal, giveUp);
      this.#waiting.add(look);
    });
  }
}

function aborted(reason: unknown): ClientError {
  const message = 'the look was aborted by the caller; the process was not touched, and its output is still collected';
  return new ClientError('ABORTED', message, {}, reason);
}

function stopped(): ClientError {
  const message =
    'the collection of the output was stopped here; the process was not touched, and runs on if it has not ended';
  return new ClientError('ABORTED', message);
}
