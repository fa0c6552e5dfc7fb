import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { BulkReplies } from '../connection/bulkReplies.js';
import { FileAnswers } from './fileAnswers.js';

/** A transport that has room and takes answers when the test says so. */
class Rig {
  room = true;
  full = false;
  over = false;
  /** Attempts in the order they were made: a small one in lower case, another in upper case. */
  readonly made: string[] = [];
  readonly #unsent: ((sent: boolean) => void)[] = [];
  readonly #bulk = new BulkReplies({
    hasRoom: () => this.room,
    afterReply: (_result, action) => this.#unsent.push(action),
  });
  readonly answers = new FileAnswers({ bulk: this.#bulk, isFull: () => this.full, isOver: () => this.over });

  /** `isSmall`: whether the small attempt is enough. */
  attempt(name: string, isSmall: boolean) {
    return async (small: boolean): Promise<{ name: string } | undefined> => {
      this.made.push(small ? name : name.toUpperCase());
      return small && !isSmall ? undefined : { name };
    };
  }

  read(name: string, isSmall = false): Promise<object> {
    return this.answers.read(this.attempt(name, isSmall));
  }

  collect(name: string, isSmall = false): Promise<object> {
    return this.answers.collect(this.attempt(name, isSmall));
  }

  /** The transport took the answer that was made last. */
  send(): void {
    this.#unsent.shift()?.(true);
  }

  roomCame(): void {
    this.room = true;
    this.#bulk.roomCame();
  }

  end(): void {
    this.over = true;
    this.#bulk.end();
  }
}

/** Lets everything run that waits for nothing but turns of the event loop. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('file answers', () => {
  it('that are small are made at once, while large ones wait for the transport', async () => {
    const rig = new Rig();
    rig.room = false;
    const large = Array.from({ length: limits.CONCURRENT_FILE_REQUESTS * 2 }, () => rig.read('l'));
    await expect(rig.read('s', true)).resolves.toEqual({ name: 's' });
    expect(rig.made).not.toContain('L');
    rig.roomCame();
    for (const answer of large) {
      await answer;
      rig.send();
    }
    expect(rig.made.filter((name) => name === 'L')).toHaveLength(large.length);
  });

  it('that are large are made one after the other', async () => {
    const rig = new Rig();
    const [a, b] = [rig.read('a'), rig.read('b')];
    await a;
    await turns();
    expect(rig.made).toEqual(['a', 'b', 'A']);
    rig.send();
    await b;
    expect(rig.made).toEqual(['a', 'b', 'A', 'B']);
  });

  it('wait their turn even when small, where nobody takes what was sent', async () => {
    const rig = new Rig();
    [rig.full, rig.room] = [true, false];
    const small = rig.read('s', true);
    await turns();
    expect(rig.made).toEqual([]);
    rig.roomCame();
    await small;
    expect(rig.made).toEqual(['S']);
  });

  it('that take long to collect do not hold up reads, and are in memory one at a time', async () => {
    const rig = new Rig();
    rig.room = false;
    const [first, second] = [rig.collect('a'), rig.collect('b')];
    await turns();
    expect(rig.made).toEqual(['a', 'b', 'A']);
    rig.roomCame();
    await first;
    rig.send();
    await second;
    expect(rig.made).toEqual(['a', 'b', 'A', 'B']);
    rig.send();
    await rig.read('c');
  });

  it('fail, and leave nothing waiting, when the connection is over', async () => {
    const rig = new Rig();
    rig.room = false;
    const waiting = [rig.read('a'), rig.collect('b'), rig.collect('c')].map((answer) =>
      expect(answer).rejects.toMatchObject({ reason: 'sessionEnded' }),
    );
    await turns();
    rig.end();
    await Promise.all(waiting);
    await expect(rig.read('d')).rejects.toMatchObject({ reason: 'sessionEnded' });
    expect(rig.made).toEqual(['a', 'b', 'c', 'B']);
  });

  it('that fail hold nothing up', async () => {
    const rig = new Rig();
    const fault = (): Promise<never> => Promise.reject(new Error('no'));
    await expect(rig.answers.read(fault)).rejects.toThrow('no');
    const late = async (small: boolean): Promise<object | undefined> => (small ? undefined : fault());
    await expect(rig.answers.read(late)).rejects.toThrow('no');
    await expect(rig.answers.collect(late)).rejects.toThrow('no');
    await expect(rig.read('a')).resolves.toEqual({ name: 'a' });
  });
});
