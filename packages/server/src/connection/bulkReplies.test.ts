import { describe, expect, it } from 'vitest';
import { BulkReplies } from './bulkReplies.js';
import { Parked } from './parking.js';

/** Answers that are sent when the test says so. */
class Rig {
  room = true;
  made: string[] = [];
  readonly sent: string[] = [];
  readonly #unsent: ((sent: boolean) => void)[] = [];
  readonly replies = new BulkReplies({
    hasRoom: () => this.room,
    afterReply: (_result, action) => this.#unsent.push(action),
  });

  ask(name: string): unknown {
    const build = (): { name: string } => {
      this.made.push(name);
      return { name };
    };
    return this.replies.make(build, ({ name: which }) => this.sent.push(which));
  }

  send(sent = true): void {
    this.#unsent.shift()?.(sent);
  }
}

describe('large answers', () => {
  it('are made at once while there is nothing else to send', () => {
    const rig = new Rig();
    expect(rig.ask('a')).toEqual({ name: 'a' });
    rig.send();
    expect(rig.ask('b')).toEqual({ name: 'b' });
  });

  it('are made one after the other, in order', async () => {
    const rig = new Rig();
    const asked = ['a', 'b', 'c'].map((name) => rig.ask(name));
    expect(rig.made).toEqual(['a']);
    rig.send();
    expect(rig.made).toEqual(['a', 'b']);
    rig.send();
    rig.send();
    expect(rig.sent).toEqual(['a', 'b', 'c']);
    expect(asked[2]).toBeInstanceOf(Parked);
    expect(await (asked[2] as Parked<object>).answer).toEqual({ name: 'c' });
  });

  it('wait for room', () => {
    const rig = new Rig();
    rig.room = false;
    rig.ask('a');
    rig.replies.roomCame();
    expect(rig.made).toEqual([]);
    rig.room = true;
    rig.replies.roomCame();
    expect(rig.made).toEqual(['a']);
  });

  it('do not wait for one that failed', async () => {
    const rig = new Rig();
    const fault = (): never => {
      throw new Error('no');
    };
    expect(() => rig.replies.make(fault)).toThrow('no');
    const late = rig.replies.make(() => Promise.reject(new Error('late')));
    const next = rig.ask('a');
    await expect((late as Parked<object>).answer).rejects.toThrow('late');
    expect(await (next as Parked<object>).answer).toEqual({ name: 'a' });
  });

  it('are not taken for sent when an error took their place, and hold nothing up', () => {
    const rig = new Rig();
    rig.ask('a');
    rig.ask('b');
    rig.send(false);
    rig.send();
    expect(rig.sent).toEqual(['b']);
  });

  it('fail when nobody takes them any more, without being made', async () => {
    const rig = new Rig();
    rig.ask('a');
    const waiting = rig.ask('b') as Parked<object>;
    rig.replies.end();
    await expect(waiting.answer).rejects.toMatchObject({ reason: 'sessionEnded' });
    expect(() => rig.ask('c')).toThrow('ended');
    rig.send();
    expect(rig.made).toEqual(['a']);
  });
});
