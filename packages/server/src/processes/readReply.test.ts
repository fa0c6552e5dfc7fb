import { Buffer } from 'node:buffer';
import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { EventLog, LogLimits } from './eventLog.js';
import { History } from './history.js';
import { hasNews, type ReadReply, readReply } from './readReply.js';

const text = (value: string): Uint8Array => Buffer.from(value);
const big = { bytes: 64 * 1024 * 1024, chunks: 200_000 };

/** The histories of the logs that `logOf` made: nothing of them is ever in a spool. */
const histories = new WeakMap<EventLog, History>();

function logOf(logLimits: LogLimits): EventLog {
  const history = new History({
    logLimits,
    detached: 'drop',
    openSpool: undefined,
    attached: () => false,
    deliveredSeq: () => 0,
    changed: () => {},
  });
  histories.set(history.log, history);
  return history.log;
}

function replyOf(log: EventLog, params: Parameters<typeof readReply>[1], epoch: string): ReadReply {
  const history = histories.get(log);
  const reply = history === undefined ? undefined : readReply(history, params, epoch);
  if (reply === undefined || reply instanceof Promise) throw new Error('what is in memory is read at once');
  return reply;
}

/** `aa`, `bb`, `cc`, exit 0, close: seqs 1 to 5. */
function finished(): EventLog {
  const log = logOf(big);
  for (const line of ['aa\n', 'bb\n', 'cc\n']) log.appendOutput('stdout', text(line));
  log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
  log.appendClosed({ reason: 'ended', holders: undefined });
  return log;
}

interface Summary {
  readonly seqs: number[];
  readonly nextSeq: number;
  readonly exited: boolean;
  readonly exitCode: number | null;
  readonly closed: boolean;
}

function read(log: EventLog, params: { afterSeq?: number | null; maxBytes?: number | null }): Summary {
  const { chunks, nextSeq, exited, exitCode, closed } = replyOf(log, { processId: 'p', ...params }, 'e').result;
  return { seqs: chunks.map(({ seq }) => seq), nextSeq, exited, exitCode, closed };
}

const ended = { exited: true, exitCode: 0, closed: true };

describe('a read of a finished process', () => {
  it.each([
    [{}, [1, 2, 3], 6],
    [{ afterSeq: null, maxBytes: null }, [1, 2, 3], 6],
    [{ afterSeq: 1 }, [2, 3], 6],
    [{ afterSeq: 3 }, [], 6],
    [{ afterSeq: 5 }, [], 6],
    [{ afterSeq: 99 }, [], 6],
    [{ maxBytes: 0 }, [1], 2],
    [{ maxBytes: 1 }, [1], 2],
    [{ maxBytes: 5 }, [1], 2],
    [{ maxBytes: 6 }, [1, 2], 3],
    [{ maxBytes: 100 }, [1, 2, 3], 4],
    [{ afterSeq: 1, maxBytes: 100 }, [2, 3], 4],
    [{ afterSeq: 3, maxBytes: 100 }, [], 6],
    [{ afterSeq: 99, maxBytes: 0 }, [], 6],
    [{ maxBytes: 2 ** 64 }, [1, 2, 3], 4],
  ])('with %j', (params, seqs, nextSeq) => {
    expect(read(finished(), params)).toEqual({ seqs, nextSeq, ...ended });
  });
});

describe('a read', () => {
  it('has the members of the base protocol and those of ours', () => {
    const log = logOf(big);
    log.appendOutput('stderr', text('x'));
    log.appendExited({ exitCode: 137, signal: 'SIGKILL', reason: 'exited' });
    expect(replyOf(log, { processId: 'p' }, 'epoch-1').result).toEqual({
      chunks: [{ seq: 1, stream: 'stderr', chunk: 'eA==' }],
      nextSeq: 3,
      exited: true,
      exitCode: 137,
      closed: false,
      failure: null,
      sandboxDenied: false,
      epoch: 'epoch-1',
      firstRetainedSeq: 1,
      exitedSeq: 2,
      reason: 'exited',
      signal: 'SIGKILL',
    });
  });

  it('tells the exit at a cursor behind it while the streams are still open', () => {
    const log = logOf(big);
    log.appendOutput('stdout', text('early\n'));
    log.appendExited({ exitCode: 4, signal: undefined, reason: 'exited' });
    expect(read(log, { afterSeq: 1 })).toEqual({ seqs: [], nextSeq: 3, exited: true, exitCode: 4, closed: false });
    log.appendOutput('stdout', text('late\n'));
    expect(read(log, { afterSeq: 2 })).toEqual({ seqs: [3], nextSeq: 4, exited: true, exitCode: 4, closed: false });
  });

  it('says what left the window', () => {
    const log = logOf({ bytes: 6, chunks: 100 });
    for (const line of ['aa\n', 'bb\n', 'cc\n', 'dd\n']) log.appendOutput('stdout', text(line));
    const { result } = replyOf(log, { processId: 'p', maxBytes: 1 }, 'e');
    expect(result.gap).toEqual({ fromSeq: 1, throughSeq: 2, bytes: 6 });
    expect(result.firstRetainedSeq).toBe(3);
    expect(result.chunks.map(({ seq }) => seq)).toEqual([3]);
    expect(replyOf(log, { processId: 'p', afterSeq: 2 }, 'e').result).not.toHaveProperty('gap');
  });

  const mib = new Uint8Array(1024 * 1024);
  function large(): EventLog {
    const log = logOf(big);
    for (let index = 0; index < 7; index += 1) log.appendOutput('stdout', mib);
    log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
    for (let index = 0; index < 2; index += 1) log.appendOutput('stdout', mib);
    log.appendClosed({ reason: 'ended', holders: undefined });
    return log;
  }

  it('that the server cuts covers the exit before the cut and not the close behind it', () => {
    const seqs = [1, 2, 3, 4, 5, 6, 7, 9];
    expect(read(large(), {})).toEqual({ seqs, nextSeq: 10, exited: true, exitCode: 0, closed: false });
  });

  it('that the server cuts says nothing of an exit behind the cut', () => {
    const log = logOf(big);
    for (let index = 0; index < 9; index += 1) log.appendOutput('stdout', mib);
    log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
    log.appendClosed({ reason: 'ended', holders: undefined });
    const first = replyOf(log, { processId: 'p' }, 'e');
    expect(first.result).toMatchObject({ nextSeq: 9, exited: false, exitCode: null, closed: false });
    expect(first.result).not.toHaveProperty('exitedSeq');
    expect(first.throughSeq).toBe(8);
    expect(read(log, { afterSeq: 8 })).toEqual({ seqs: [9], nextSeq: 12, ...ended });
  });

  it('is cut by the number of chunks', () => {
    const log = logOf(big);
    for (let index = 0; index <= limits.MAX_READ_CHUNKS; index += 1) log.appendOutput('stdout', text('x'));
    log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
    const { result } = replyOf(log, { processId: 'p' }, 'e');
    expect(result.chunks.length).toBe(limits.MAX_READ_CHUNKS);
    expect(result).toMatchObject({ nextSeq: limits.MAX_READ_CHUNKS + 1, exited: false });
  });

  it.each([1, 7, 100, 168, 300, 8192])(
    'never makes a reply that is too large to be sent, with chunks of %i bytes',
    (size) => {
      const log = logOf(big);
      const chunk = new Uint8Array(size);
      const count = Math.min(60_000, Math.ceil((10 * 1024 * 1024) / size));
      for (let index = 0; index < count; index += 1) log.appendOutput('stderr', chunk);
      const { result } = replyOf(log, { processId: 'p' }, 'e');
      expect(JSON.stringify(result).length).toBeLessThanOrEqual(limits.MAX_REPLY_BYTES);
      expect(result.chunks.length).toBeGreaterThan(Math.min(count, 25_000) * 0.5);
    },
  );
});

describe('news', () => {
  it('is a chunk or an exit behind the cursor', () => {
    const log = logOf(big);
    expect(hasNews(log, 0)).toBe(false);
    log.appendOutput('stdout', text('x'));
    expect(hasNews(log, 0)).toBe(true);
    expect(hasNews(log, 1)).toBe(false);
    log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
    expect(hasNews(log, 1)).toBe(true);
    expect(hasNews(log, 2)).toBe(false);
    expect(hasNews(log, 99)).toBe(false);
  });

  it('is a close at any cursor', () => {
    expect(hasNews(finished(), 0)).toBe(true);
    expect(hasNews(finished(), 5)).toBe(true);
    expect(hasNews(finished(), 99)).toBe(true);
  });
});
