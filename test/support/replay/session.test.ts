import { describe, expect, it } from 'vitest';
import { Allowance, type Difference, EXTRA, EXTRA_OUTPUT } from './difference.js';
import { ReplaySession } from './session.js';
import type { JsonObject } from './transcript.js';

const more: Difference = {
  id: 'more',
  what: 'one message and one byte more',
  reason: 'extension',
  forgives: ({ path, actual }, { actual: message }) =>
    path === EXTRA ? message['id'] === 9 : path === EXTRA_OUTPUT && actual === '!',
};

const encode = (text: string): string => Buffer.from(text).toString('base64');
const push = (seq: number, text: string): JsonObject => ({
  method: 'process/output',
  params: { processId: 'p', seq, stream: 'stdout', chunk: encode(text) },
});
const answer = (...texts: string[]): JsonObject => ({
  id: 1,
  result: {
    chunks: texts.map((text, index) => ({ seq: index + 1, stream: 'stdout', chunk: encode(text) })),
    nextSeq: texts.length + 1,
    exited: false,
  },
});

function openSession(...differences: Difference[]): { session: ReplaySession; allowance: Allowance } {
  const allowance = new Allowance('scenario', differences);
  const session = new ReplaySession(allowance);
  session.sent({ id: 1, method: 'process/read', params: { processId: 'p' } });
  return { session, allowance };
}

describe('a recorded read and the pushes behind it', () => {
  it('may share the output in another way', async () => {
    const { session } = openSession();
    session.receive(answer('a', 'b'));
    session.receive(push(3, 'c'));
    await session.take(answer('a'), new Map());
    await session.take(push(2, 'b'), new Map());
    await session.take(push(3, 'c'), new Map());
    expect(session.leftOver()).toEqual([]);
  });

  it('may both have it where pushes had come before', async () => {
    const { session } = openSession();
    for (const [index, text] of ['a', 'b', 'c'].entries()) session.receive(push(index + 1, text));
    session.receive(answer('a', 'b'));
    await session.take(push(1, 'a'), new Map());
    await session.take(answer('a'), new Map());
    await session.take(push(2, 'bc'), new Map());
    expect(session.leftOver()).toEqual([]);
  });

  it('have no other output, and none twice', async () => {
    const other = openSession().session;
    other.receive(answer('x'));
    await expect(other.take(answer('a'), new Map())).rejects.toThrow('not as recorded');
    const { session } = openSession();
    for (const message of [answer('a', 'b'), push(2, 'b'), push(3, 'b')]) session.receive(message);
    await session.take(answer('a'), new Map());
    await session.take(push(2, 'b'), new Map());
    expect(session.leftOver()).toHaveLength(1);
  });
});

describe('what is beyond the recording', () => {
  it('is left over, unless a difference says so, which then was used', () => {
    for (const [differences, left, used] of [
      [[], 2, []],
      [[more], 0, ['more']],
    ] as const) {
      const { session, allowance } = openSession(...differences);
      session.receive({ id: 9, result: {} });
      session.receive(push(1, '!'));
      expect(session.leftOver()).toHaveLength(left);
      expect([...allowance.used]).toEqual(used);
    }
  });

  it('is left over as another message or other output', () => {
    const { session } = openSession(more);
    session.receive({ id: 8, result: {} });
    session.receive(push(1, '?'));
    expect(session.leftOver()).toHaveLength(2);
  });

  it('may be taken off the output by a difference', async () => {
    const { session, allowance } = openSession({ ...more, strip: (output) => output.replace('MARK\n', '') });
    session.receive(push(1, 'a\nMARK\nb\n'));
    await session.take(push(1, 'a\nb\n'), new Map());
    expect(session.leftOver()).toEqual([]);
    expect([...allowance.used]).toEqual(['more']);
  });
});
