/** Follows a process whose stdout is a flood, and checks that its events come in order, each once, with the right bytes. */
import type { ProcessEvent } from '@exec-server/client';
import { FloodView } from './flood.js';

export class FloodTaken {
  readonly view = new FloodView();
  /** What came besides output, in order. */
  readonly order: ProcessEvent['type'][] = [];
  /** Last seq that came, or was told to be gone. */
  lastSeq = 0;
}

/**
 * Ends with the events, or with their error. `taken` is told after each event; it may make the reader wait, and leave by
 * answering `leave`. With `so` a reader goes on that has left before.
 */
export async function takeFlood(
  events: AsyncIterable<ProcessEvent>,
  taken: (so: FloodTaken, event: ProcessEvent) => unknown = () => {},
  so = new FloodTaken(),
): Promise<FloodTaken> {
  for await (const event of events) {
    const first = event.type === 'gap' ? event.fromSeq : event.seq;
    if (first !== so.lastSeq + 1) throw new Error(`event ${first} (${event.type}) came behind event ${so.lastSeq}`);
    so.lastSeq = event.type === 'gap' ? event.throughSeq : event.seq;
    if (event.type !== 'output') so.order.push(event.type);
    if (event.type === 'gap') so.view.gap(event.bytes);
    else if (event.type === 'output' && event.stream === 'stdout') so.view.output(event.bytes);
    if ((await taken(so, event)) === 'leave') break;
  }
  return so;
}
