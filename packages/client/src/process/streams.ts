/** Web streams over the events of a process: each reads its own stream, and none holds back another. */
import { type GapEvent, type OutputEvent, type ProcessEvent, sizeOf } from '../events.js';

/** Output streams as a caller sees them; what a terminal shows is in `stdout`. */
export type OutputName = 'stdout' | 'stderr';

/** Unread bytes of one stream at which it holds back its process, as a full pipe would. */
export const READ_AHEAD_BYTES = 256 * 1024;

type StreamEvent = OutputEvent | GapEvent;
/** The end of what could be had; a stream that fails at once would drop what its reader has not taken yet. */
interface Failed {
  readonly type: 'failed';
  readonly error: unknown;
}

/**
 * The output and gaps of one stream. Events are taken from the first `next` on, and then ahead of the reader, so that what
 * the other stream brings never waits for this one.
 */
export class StreamReader {
  readonly #open: () => AsyncIterableIterator<ProcessEvent, undefined>;
  readonly #name: OutputName;
  #ahead: ReadableStreamDefaultReader<StreamEvent | Failed> | undefined;

  constructor(name: OutputName, open: () => AsyncIterableIterator<ProcessEvent, undefined>) {
    this.#name = name;
    this.#open = open;
  }

  /** Undefined at the end of the stream; rejects behind the last event there was, with the cursor to go on from. */
  async next(): Promise<StreamEvent | undefined> {
    this.#ahead ??= readAhead(this.#open(), this.#name).getReader();
    const event = (await this.#ahead.read()).value;
    if (event?.type === 'failed') throw event.error;
    return event;
  }

  async cancel(): Promise<void> {
    await this.#ahead?.cancel();
  }
}

function readAhead(
  events: AsyncIterableIterator<ProcessEvent, undefined>,
  name: OutputName,
): ReadableStream<StreamEvent | Failed> {
  return new ReadableStream<StreamEvent | Failed>(
    {
      pull: async (controller) => {
        try {
          const event = await nextOf(events, name);
          if (event === undefined) controller.close();
          else controller.enqueue(event);
        } catch (error) {
          controller.enqueue({ type: 'failed', error });
          controller.close();
        }
      },
      cancel: async () => {
        await events.return?.();
      },
    },
    { highWaterMark: READ_AHEAD_BYTES, size: (event) => (event.type === 'failed' ? 0 : sizeOf(event)) },
  );
}

async function nextOf(
  events: AsyncIterableIterator<ProcessEvent, undefined>,
  name: OutputName,
): Promise<StreamEvent | undefined> {
  for (;;) {
    const { value: event } = await events.next();
    switch (event?.type) {
      case 'output':
        if ((event.stream === 'stderr') === (name === 'stderr')) return event;
        break;
      case 'gap':
        return event;
      case 'exited':
        break;
      case 'closed':
      case undefined:
        return undefined;
      default:
        event satisfies never;
    }
  }
}

/** The bytes of one stream; gaps go to `onGap`. Nothing is taken before the first read. */
export function byteStream(reader: StreamReader, onGap: (gap: GapEvent) => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        for (;;) {
          const event = await reader.next();
          if (event === undefined) {
            controller.close();
            return;
          }
          if (event.type === 'output') {
            controller.enqueue(event.bytes);
            return;
          }
          onGap(event);
        }
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  );
}

/** The text of one stream, decoded over chunk borders; a character that a gap cuts is U+FFFD. */
export async function* textOf(
  reader: StreamReader,
  onGap: (gap: GapEvent) => void,
): AsyncGenerator<string, void, undefined> {
  // A byte order mark is output like any other.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  try {
    for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
      if (event.type === 'gap') onGap(event);
      const piece = event.type === 'output' ? decoder.decode(event.bytes, { stream: true }) : decoder.decode();
      if (piece !== '') yield piece;
    }
    const rest = decoder.decode();
    if (rest !== '') yield rest;
  } finally {
    await reader.cancel();
  }
}

/** What is written to the stdin of a process; `close` ends it behind everything written, and so does `abort`. */
export function stdinStream(stdin: {
  write(data: string | Uint8Array): Promise<void>;
  end(): Promise<void>;
}): WritableStream<string | Uint8Array> {
  return new WritableStream<string | Uint8Array>({
    write: (chunk) => stdin.write(chunk),
    close: () => stdin.end(),
    abort: () => stdin.end(),
  });
}
