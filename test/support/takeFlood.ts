/** Follows a process whose stdout is a flood, and checks that its events come in order, each once, with the right bytes. */
import type { ProcessEvent } from '@exec-server/client';
import { FloodView } from './flood.js';

export interface FloodTaken {
  readonly view: FloodView;
  /** What came besides output, in order. */
  readonly order: readonly ProcessEvent['type'][];
  /** Last seq that came. */
  readonly lastSeq: number;
}

/** Ends with the events, or with their error; `taken` is told the state after each event, and may make the reader wait. */
export async function takeFlood(
  events: AsyncIterable<ProcessEvent>,
  taken: (so: FloodTaken, event: ProcessEvent) => void | Promise<void> = () => {},
): Promise<FloodTaken> {
  const view = new FloodView();
  const order: ProcessEvent['type'][] = [];
  const so = { view, order, lastSeq: 0 };
  for await (const event of events) {
    const first = event.type === 'gap' ? event.fromSeq : event.seq;
    if (first !== so.lastSeq + 1) throw new Error(`event ${first} (${event.type}) came behind event ${so.lastSeq}`);
    so.lastSeq = event.type === 'gap' ? event.throughSeq : event.seq;
    if (event.type !== 'output') order.push(event.type);
    if (event.type === 'gap') view.gap(event.bytes);
    else if (event.type === 'output' && event.stream === 'stdout') view.output(event.bytes);
    await taken(so, event);
  }
  return so;
}
