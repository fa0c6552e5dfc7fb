/** What must come out of one process: its events, what is kept of them, and what a read of them answers. */
import type { ExitStatus, GapEvent, ProcessEvent } from '@exec-server/client';
import type { ResultOf } from '@exec-server/protocol';
import { expect } from 'vitest';

/** The window of the server under test, the smallest there is: 2.25 MiB. */
export const WINDOW_BYTES = 2_359_296;

type ModelEvent =
  | { readonly type: 'output'; readonly bytes: Buffer }
  | ({ readonly type: 'exited' } & ExitStatus)
  | { readonly type: 'closed' };

export class ModelProcess {
  readonly id: string;
  /** Whether it loses what does not fit memory while nobody is attached. */
  readonly drops: boolean;
  /** The event of seq n is at n - 1. */
  readonly events: ModelEvent[] = [];
  stdin = '';
  stdinOpen = true;
  streamsOpen = true;
  state: 'running' | 'exited' | 'closed' = 'running';
  /** Why the server no longer has it, once it does not. */
  forgotten: 'released' | 'expired' | undefined;
  /** Its end may not have been acknowledged: the connection was cut behind it. */
  endCutOff = false;
  #first = 1;
  #held = 0;
  #total = 0;

  constructor(id: string, drops: boolean) {
    this.id = id;
    this.drops = drops;
  }

  /** The first event that memory alone still has for sure. */
  get firstInWindow(): number {
    return this.#first;
  }

  /** The next so many bytes of output, which differ from all others. */
  nextBytes(count: number): Buffer {
    const label = `${this.id}:${this.#total};`;
    return Buffer.alloc(count, label);
  }

  output(bytes: Buffer): void {
    this.events.push({ type: 'output', bytes });
    this.#total += bytes.length;
    this.#held += bytes.length;
    for (; this.#held > WINDOW_BYTES; this.#first += 1) this.#held -= this.#sizeOf(this.#first);
  }

  exit(status: ExitStatus): void {
    this.events.push({ type: 'exited', ...status });
    this.state = 'exited';
    this.stdinOpen = false;
    this.#closeIfOver();
  }

  endStreams(): void {
    this.streamsOpen = false;
    this.#closeIfOver();
  }

  /** By `terminate`; what holds its streams dies with it. */
  kill(): void {
    if (this.state === 'running') this.exit({ exitCode: 137, signal: 'SIGKILL', reason: 'terminated' });
    this.endStreams();
  }

  expectEvent(event: Exclude<ProcessEvent, GapEvent>): void {
    const { seq, ...rest } = event;
    const expected = this.events[seq - 1];
    if (event.type === 'output' && expected?.type === 'output') {
      expect(event.stream).toBe('stdout');
      expect(expected.bytes.equals(event.bytes), `the bytes of event ${seq} of ${this.id}`).toBe(true);
    } else if (event.type === 'closed') {
      expect({ ...rest }).toEqual({ ...expected, reason: 'ended' });
    } else {
      expect({ signal: undefined, ...rest }, `event ${seq} of ${this.id}`).toEqual(expected);
    }
  }

  /** A gap tells its bytes exactly, and of nothing that is kept. */
  expectGap({ fromSeq, throughSeq, bytes }: Omit<GapEvent, 'type'>): void {
    expect(throughSeq).toBeLessThan(this.#first);
    expect(this.events.slice(fromSeq - 1, throughSeq).map(({ type }) => type)).not.toContain('exited');
    if (bytes !== undefined) expect(bytes).toBe(this.#bytesOf(fromSeq, throughSeq));
  }

  /** The answer to a read behind `cursor`; nothing behind `delivered` may be gone. */
  expectRead(
    reply: ResultOf<'process/read'>,
    { cursor, maxBytes, delivered }: { cursor: number; maxBytes: number | undefined; delivered: number },
  ): void {
    const first = reply.firstRetainedSeq ?? 0;
    const last = this.events.length;
    expect(first).toBeGreaterThanOrEqual(1);
    expect(first).toBeLessThanOrEqual(this.#first);
    if (this.#total <= WINDOW_BYTES) expect(first).toBe(1);
    if (!this.drops) expect(first).toBeLessThanOrEqual(delivered + 1);
    expect(reply.gap ?? undefined).toEqual(this.#gapBehind(cursor, first));
    const chunks = this.#chunksBehind(Math.max(cursor, first - 1), maxBytes ?? Number.POSITIVE_INFINITY);
    // A read from the disk ends where the disk ends.
    const isWhole = reply.chunks.length === chunks.length || (first < this.#first && reply.chunks.length > 0);
    expect(isWhole, `${reply.chunks.length} of ${chunks.length} chunks`).toBe(true);
    for (const [index, { seq, chunk }] of reply.chunks.entries()) {
      expect(seq).toBe(chunks[index]);
      this.expectEvent({ type: 'output', seq, stream: 'stdout', bytes: Buffer.from(chunk, 'base64') });
    }
    const isCut =
      reply.chunks.length < this.#chunksBehind(Math.max(cursor, first - 1), Number.POSITIVE_INFINITY).length;
    const lastChunk = reply.chunks.at(-1)?.seq;
    const covered = lastChunk !== undefined && (maxBytes !== undefined || isCut) ? lastChunk : last;
    expect(reply.nextSeq).toBe(covered + 1);
    this.#expectEnds(reply, maxBytes === undefined ? covered : last);
  }

  #expectEnds(reply: ResultOf<'process/read'>, told: number): void {
    const exitedSeq = this.#seqOf('exited');
    const exited = this.events[exitedSeq - 1];
    expect(reply.exited).toBe(exitedSeq > 0 && exitedSeq <= told);
    expect(reply.exitCode).toBe(reply.exited && exited?.type === 'exited' ? exited.exitCode : null);
    if (reply.exited) expect(reply).toMatchObject({ exitedSeq });
    const closedSeq = this.#seqOf('closed');
    expect(reply.closed).toBe(closedSeq > 0 && closedSeq <= told);
  }

  #gapBehind(cursor: number, first: number): { fromSeq: number; throughSeq: number; bytes: number } | undefined {
    const exitedSeq = this.#seqOf('exited');
    const fromSeq = cursor + 1 === exitedSeq ? cursor + 2 : cursor + 1;
    if (fromSeq >= first) return undefined;
    const throughSeq = exitedSeq > fromSeq && exitedSeq < first ? exitedSeq - 1 : first - 1;
    return { fromSeq, throughSeq, bytes: this.#bytesOf(fromSeq, throughSeq) };
  }

  /** Seqs of the output behind a cursor that fits the budget; the first in any case. */
  #chunksBehind(cursor: number, maxBytes: number): number[] {
    const seqs: number[] = [];
    let bytes = 0;
    for (let seq = cursor + 1; seq <= this.events.length; seq += 1) {
      if (this.events[seq - 1]?.type !== 'output') continue;
      bytes += this.#sizeOf(seq);
      if (bytes > maxBytes && seqs.length > 0) break;
      seqs.push(seq);
    }
    return seqs;
  }

  #closeIfOver(): void {
    if (this.state !== 'exited' || this.streamsOpen) return;
    this.events.push({ type: 'closed' });
    this.state = 'closed';
  }

  #seqOf(type: ModelEvent['type']): number {
    return this.events.findIndex((event) => event.type === type) + 1;
  }

  #sizeOf(seq: number): number {
    const event = this.events[seq - 1];
    return event?.type === 'output' ? event.bytes.length : 0;
  }

  #bytesOf(fromSeq: number, throughSeq: number): number {
    let bytes = 0;
    for (let seq = fromSeq; seq <= throughSeq; seq += 1) bytes += this.#sizeOf(seq);
    return bytes;
  }
}
