import { describe, expect, it } from 'vitest';
import { firstSeqOf, lastSeqOf, type ProcessEvent } from '../events.js';
import type { ReadReply } from '../guards.js';
import { eventsOfReply, type Known } from './replyEvents.js';

const nothingKnown: Known = { afterSeq: 0, held: [], exitKnown: false };

function reply(seqs: readonly number[], overrides: Partial<ReadReply>): ReadReply {
  const chunks = seqs.map((seq) => ({ type: 'output', seq, stream: 'stdout', bytes: new Uint8Array(1) }) as const);
  return { chunks, nextSeq: 1, closed: false, endsLater: false, closing: {}, ...overrides };
}

/** Events in short: `2` output, `x3` exit, `c4` close, `g5-6` gap. */
function short(of: ReadReply, known: Known = nothingKnown): string {
  const result = eventsOfReply(of, known);
  return result.ok ? result.events.map(inShort).join(' ') : `wrong: ${result.detail}`;
}

function inShort(event: ProcessEvent): string {
  const prefix = { output: '', exited: 'x', closed: 'c', gap: 'g' }[event.type];
  return event.type === 'gap' ? `g${firstSeqOf(event)}-${lastSeqOf(event)}` : `${prefix}${event.seq}`;
}

const exited = { exit: { exitCode: 3 } } as const;

describe('an extended server', () => {
  it('says where the exit and the gap are', () => {
    const more = {
      ...exited,
      nextSeq: 7,
      exitedSeq: 5,
      closed: true,
      gap: { type: 'gap', fromSeq: 1, throughSeq: 2, bytes: 8 },
    } as const;
    expect(short(reply([3, 4], more))).toBe('g1-2 3 4 x5 c6');
  });

  it('has let go of what it covers and does not contain', () => {
    expect(short(reply([4], { nextSeq: 6 }))).toBe('g1-3 4 g5-5');
  });

  it('tells nothing new below the cursor', () => {
    const more = { ...exited, nextSeq: 4, exitedSeq: 3, gap: { type: 'gap', fromSeq: 1, throughSeq: 1 } } as const;
    expect(short(reply([2], more), { afterSeq: 3, held: [], exitKnown: true })).toBe('');
  });

  it('does not take held pushes for lost', () => {
    expect(short(reply([1], { nextSeq: 4 }), { afterSeq: 0, held: [2, 3], exitKnown: false })).toBe('1');
  });
});

describe('what is recovered by a read', () => {
  it('has the signal, the reasons and the holders that a push has', () => {
    const exit = { exitCode: 143, signal: 'SIGTERM', reason: 'terminated' } as const;
    const closing = { reason: 'heldOpen', holders: 2 } as const;
    const known = reply([], { exit, exitedSeq: 1, closed: true, closing, nextSeq: 3 });
    expect(eventsOfReply(known, nothingKnown)).toEqual({
      ok: true,
      events: [
        { type: 'exited', seq: 1, ...exit },
        { type: 'closed', seq: 2, ...closing },
      ],
    });
    expect(eventsOfReply(reply([], { exit, nextSeq: 2 }), nothingKnown)).toEqual({
      ok: true,
      events: [{ type: 'exited', seq: 1, ...exit }],
    });
  });
});

describe('a foreign server', () => {
  it('has its exit in the one missing number', () => {
    expect(short(reply([1, 2], { ...exited, nextSeq: 4 }))).toBe('1 2 x3');
    expect(short(reply([1, 3], { ...exited, nextSeq: 5, closed: true }))).toBe('1 x2 3 c4');
    expect(short(reply([2], { ...exited, nextSeq: 4, closed: true }))).toBe('x1 2 c3');
    expect(short(reply([], { ...exited, nextSeq: 3, closed: true }))).toBe('x1 c2');
  });

  it('has evicted what lies before known output, and its exit in a hole behind it', () => {
    expect(short(reply([4, 6], { ...exited, nextSeq: 8, closed: true }))).toBe('g1-3 4 x5 6 c7');
  });

  it('has its exit at the end of the hole when nothing behind is missing', () => {
    expect(short(reply([4], { ...exited, nextSeq: 6, closed: true }))).toBe('g1-2 x3 4 c5');
  });

  it('finds the place of the exit next to held pushes', () => {
    expect(short(reply([1], { ...exited, nextSeq: 4 }), { afterSeq: 0, held: [3], exitKnown: false })).toBe('1 x2');
  });

  it('does not look for an exit that is known', () => {
    expect(short(reply([3], { ...exited, nextSeq: 4 }), { afterSeq: 2, held: [], exitKnown: true })).toBe('3');
  });

  it('may have exited before a handle began', () => {
    const known: Known = { afterSeq: 5, held: [], exitKnown: false, exitMayPrecede: true };
    expect(short(reply([6], { ...exited, nextSeq: 7 }), known)).toBe('6');
  });
});

describe('a contradiction', () => {
  it('is an exit without a number', () => {
    expect(short(reply([1, 2], { ...exited, nextSeq: 3 }))).toMatch(/^wrong: .*no number left/);
  });

  it('is a number that is output and something else', () => {
    expect(short(reply([1], { ...exited, exitedSeq: 1, nextSeq: 2 }))).toMatch(/^wrong: event 1 /);
    expect(short(reply([1], { closed: true, nextSeq: 2 }))).toMatch(/^wrong: event 1 /);
  });
});
