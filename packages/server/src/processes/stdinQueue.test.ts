import { Buffer } from 'node:buffer';
import { limits, WireError } from '@exec-server/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeStdin } from '../../../../test/support/fakeChild.js';
import { type StdinAnswer, StdinQueue, type WaitingWrite } from './stdinQueue.js';

interface Wish {
  readonly writeId?: string;
  readonly offset?: number;
  readonly eof?: boolean;
}

function write(queue: StdinQueue, text: string, { writeId, offset, eof = false }: Wish): StdinAnswer | WaitingWrite {
  return queue.write({ bytes: Buffer.from(text), writeId, offset, eof });
}

/** The answer of a write that must have been answered at once. */
function now(outcome: StdinAnswer | WaitingWrite): StdinAnswer {
  if ('answer' in outcome) throw new Error('the write waits');
  return outcome;
}

function waits(outcome: StdinAnswer | WaitingWrite): WaitingWrite {
  if ('answer' in outcome) return outcome;
  throw new Error(`the write was answered: ${outcome.status}`);
}

function refusal(action: () => unknown): WireError {
  try {
    action();
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error('the write was taken');
}

const full = 'x'.repeat(limits.STDIN_QUEUE_BYTES);

/** A queue whose sink takes nothing for now. */
function stuck(): { queue: StdinQueue; sink: FakeStdin } {
  const sink = new FakeStdin();
  const queue = new StdinQueue(sink);
  now(write(queue, full, { writeId: 'full' }));
  return { queue, sink };
}

describe('stdin', () => {
  it('takes writes in order and counts what it accepted', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    expect(now(write(queue, 'one ', { writeId: '1' }))).toEqual({ status: 'accepted', acceptedOffset: 4 });
    expect(now(write(queue, 'two', { writeId: '2' }))).toEqual({ status: 'accepted', acceptedOffset: 7 });
    expect(now(write(queue, '', { writeId: '3' }))).toEqual({ status: 'accepted', acceptedOffset: 7 });
    sink.takeAll();
    expect(sink.taken).toEqual(['one ', 'two']);
  });

  it('drops a write whose id was accepted, whatever its bytes', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    write(queue, 'one', { writeId: '1' });
    expect(now(write(queue, 'REPEAT', { writeId: '1' }))).toEqual({ status: 'accepted', acceptedOffset: 3 });
    expect(sink.waiting).toEqual(['one']);
  });

  it('drops what lies before the accepted offset', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    write(queue, 'abc', { offset: 0 });
    expect(now(write(queue, 'bcde', { offset: 1 }))).toEqual({ status: 'accepted', acceptedOffset: 5 });
    expect(now(write(queue, 'ab', { offset: 0 }))).toEqual({ status: 'accepted', acceptedOffset: 5 });
    expect(sink.waiting).toEqual(['abc', 'de']);
  });

  it('advances the offset by writes that are named', () => {
    const queue = new StdinQueue(new FakeStdin());
    write(queue, 'abc', { writeId: '1' });
    expect(now(write(queue, 'cd', { offset: 2 }))).toEqual({ status: 'accepted', acceptedOffset: 4 });
  });

  it('refuses a hole and says where to go on', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    write(queue, 'abc', { offset: 0 });
    const error = refusal(() => write(queue, 'x', { offset: 4 }));
    expect(error).toMatchObject({ reason: 'writeHole', data: { field: 'offset', acceptedOffset: 3 } });
    expect(sink.waiting).toEqual(['abc']);
  });

  it('lets a write wait before it is accepted when the queue is full', async () => {
    const { queue, sink } = stuck();
    const waiting = waits(write(queue, 'more', { writeId: 'more' }));
    expect(queue.acceptedBytes).toBe(full.length);
    expect(sink.waiting.length).toBe(1);
    sink.takeAll();
    expect(await waiting.answer).toEqual({ status: 'accepted', acceptedOffset: full.length + 4 });
    expect(sink.waiting).toEqual(['more']);
  });

  it('takes a write larger than the queue when nothing else is queued', () => {
    const queue = new StdinQueue(new FakeStdin());
    expect(now(write(queue, `${full}y`, { writeId: '1' })).status).toBe('accepted');
  });

  it('keeps the order of waiting writes, even when a later one would fit', async () => {
    const { queue, sink } = stuck();
    const first = waits(write(queue, 'first', { writeId: '1' }));
    const empty = waits(write(queue, '', { writeId: '2' }));
    const last = waits(write(queue, 'last', { writeId: '3', eof: true }));
    sink.takeAll();
    const answers = await Promise.all([first.answer, empty.answer, last.answer]);
    expect(answers.map(({ acceptedOffset }) => acceptedOffset - full.length)).toEqual([5, 5, 9]);
    expect(sink.waiting).toEqual(['first', 'last']);
    expect(sink.ended).toBe(true);
  });

  it('takes a waiting write back as if it had never come', async () => {
    const { queue, sink } = stuck();
    const waiting = waits(write(queue, 'mine', { writeId: 'w' }));
    waiting.cancel();
    expect(await waiting.answer).toEqual({ status: 'stdinClosed', acceptedOffset: full.length });
    sink.takeAll();
    expect(sink.waiting).toEqual([]);
    expect(now(write(queue, 'mine', { writeId: 'w' }))).toEqual({
      status: 'accepted',
      acceptedOffset: full.length + 4,
    });
  });

  it('takes nothing back that was accepted meanwhile', async () => {
    const { queue, sink } = stuck();
    const waiting = waits(write(queue, 'mine', { writeId: 'w' }));
    sink.takeAll();
    waiting.cancel();
    expect((await waiting.answer).status).toBe('accepted');
    expect(sink.waiting).toEqual(['mine']);
  });

  it('accepts a repeat of a waiting write once', async () => {
    const { queue, sink } = stuck();
    const first = waits(write(queue, 'mine', { writeId: 'w' }));
    const repeat = waits(write(queue, 'mine', { writeId: 'w' }));
    sink.takeAll();
    await Promise.all([first.answer, repeat.answer]);
    expect(sink.waiting).toEqual(['mine']);
  });

  it('answers a repeat of an accepted write at once while others wait', () => {
    const { queue } = stuck();
    write(queue, 'more', { writeId: 'more' });
    expect(now(write(queue, full, { writeId: 'full' })).status).toBe('accepted');
  });

  it('refuses a hole that shows when the write gets its turn, and goes on behind it', async () => {
    const { queue, sink } = stuck();
    const before = waits(write(queue, 'w', { offset: full.length }));
    const hole = waits(write(queue, 'x', { offset: full.length + 5 }));
    const after = waits(write(queue, 'y', { offset: full.length + 1 }));
    const refused = expect(hole.answer).rejects.toMatchObject({ reason: 'writeHole' });
    sink.takeAll();
    await refused;
    await before.answer;
    expect(await after.answer).toEqual({ status: 'accepted', acceptedOffset: full.length + 2 });
  });

  it('refuses one waiting write more than it holds', async () => {
    const { queue } = stuck();
    const waiting = Array.from({ length: limits.STDIN_WAITING_WRITES }, (_, index) =>
      waits(write(queue, 'x', { writeId: `w${index}` })),
    );
    expect(refusal(() => write(queue, 'x', { writeId: 'one more' })).reason).toBe('stdinQueueFull');
    queue.closed();
    await Promise.all(waiting.map(({ answer }) => answer));
  });

  it('answers waiting writes when stdin closes, and frees the descriptor', async () => {
    const { queue, sink } = stuck();
    const waiting = [1, 2].map((id) => waits(write(queue, 'x', { writeId: String(id) })));
    queue.closed();
    const answers = await Promise.all(waiting.map(({ answer }) => answer));
    expect(answers.map(({ status }) => status)).toEqual(['stdinClosed', 'stdinClosed']);
    expect(sink.destroyed).toBe(true);
    expect(queue.acceptedBytes).toBe(full.length);
  });

  it('accepts no waiting write when the child closes its end', async () => {
    const { queue, sink } = stuck();
    const waiting = waits(write(queue, 'x', { writeId: 'w' }));
    sink.break();
    expect(await waiting.answer).toEqual({ status: 'stdinClosed', acceptedOffset: full.length });
    expect(now(write(queue, 'x', { writeId: 'v' })).status).toBe('stdinClosed');
  });

  it('still answers repeats after the close as accepted', () => {
    const queue = new StdinQueue(new FakeStdin());
    write(queue, 'abc', { writeId: '1' });
    queue.closed();
    expect(now(write(queue, 'abc', { writeId: '1' }))).toEqual({ status: 'accepted', acceptedOffset: 3 });
    expect(now(write(queue, 'abc', { offset: 0 }))).toEqual({ status: 'accepted', acceptedOffset: 3 });
    expect(now(write(queue, 'bcd', { offset: 1 }))).toEqual({ status: 'stdinClosed', acceptedOffset: 3 });
    expect(now(write(queue, 'x', { writeId: '2' }))).toEqual({ status: 'stdinClosed', acceptedOffset: 3 });
  });

  it('does not take the first end of input for a repeated one when the program has closed before', () => {
    const queue = new StdinQueue(new FakeStdin());
    write(queue, 'abc', { offset: 0 });
    queue.closed();
    expect(now(write(queue, '', { offset: 3, eof: true }))).toEqual({ status: 'stdinClosed', acceptedOffset: 3 });
    expect(now(write(queue, 'c', { offset: 2, eof: true }))).toEqual({ status: 'stdinClosed', acceptedOffset: 3 });
  });

  it('ends the input behind the bytes of the write that says so, and takes nothing more', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    expect(now(write(queue, 'last', { writeId: '1', eof: true })).status).toBe('accepted');
    expect(sink.waiting).toEqual(['last']);
    expect(sink.ended).toBe(true);
    expect(now(write(queue, 'more', { writeId: '2' })).status).toBe('stdinClosed');
    expect(now(write(queue, 'last', { writeId: '1', eof: true })).status).toBe('accepted');
    expect(now(write(queue, '', { offset: 4, eof: true })).status).toBe('accepted');
  });

  it('is closed for a process without stdin', () => {
    expect(now(write(new StdinQueue(undefined), 'x', { writeId: '1' }))).toEqual({
      status: 'stdinClosed',
      acceptedOffset: 0,
    });
  });

  it('forgets the oldest ids beyond the number it remembers', () => {
    const sink = new FakeStdin();
    const queue = new StdinQueue(sink);
    for (let id = 0; id <= limits.REMEMBERED_WRITE_IDS; id += 1) write(queue, 'x', { writeId: String(id) });
    const accepted = queue.acceptedBytes;
    expect(now(write(queue, 'x', { writeId: '1' })).acceptedOffset).toBe(accepted);
    expect(now(write(queue, 'x', { writeId: '0' })).acceptedOffset).toBe(accepted + 1);
  });

  it('delivers each byte once and in order however a client repeats by offset', () => {
    const text = 'abcdefghijklmnopqrstuvwxyz';
    const repeats = fc.array(fc.record({ from: fc.nat(26), length: fc.nat(8) }), { maxLength: 30 });
    fc.assert(
      fc.property(repeats, (pieces) => {
        const sink = new FakeStdin();
        const queue = new StdinQueue(sink);
        for (const { from, length } of pieces) {
          const offset = Math.min(from, queue.acceptedBytes);
          write(queue, text.slice(offset, offset + length), { offset });
        }
        sink.takeAll();
        expect(sink.taken.join('')).toBe(text.slice(0, queue.acceptedBytes));
      }),
    );
  });
});
