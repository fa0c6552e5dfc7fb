import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FrameSource, Outbox } from './outbox.js';

class Carrier {
  readonly sent: string[] = [];
  queued = 0;
  send(frame: string | Uint8Array): void {
    this.sent.push(String(frame));
    this.queued += frame.length;
  }
  queuedBytes(): number {
    return this.queued;
  }
}

function source(frames: readonly string[]): FrameSource & { asked: number } {
  const left = [...frames];
  return {
    asked: 0,
    next() {
      this.asked += 1;
      return left.shift();
    },
  };
}

describe('the outbox', () => {
  it('takes one message of each source in turn', () => {
    const carrier = new Carrier();
    const outbox = new Outbox(carrier, 3);
    outbox.ready(source(['a1', 'a2', 'a3']));
    outbox.ready(source(['b1', 'b2', 'b3']));
    outbox.ready(source(['c1']));
    while (carrier.queued > 0) {
      carrier.queued = 0;
      outbox.flush();
    }
    expect(carrier.sent).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'b2', 'b3']);
  });

  it('stops at the high-water mark and goes on when the carrier has drained', () => {
    const carrier = new Carrier();
    const outbox = new Outbox(carrier, 4);
    outbox.ready(source(['aa', 'bb', 'cc']));
    expect(carrier.sent).toEqual(['aa', 'bb']);
    expect(outbox.open).toBe(false);
    carrier.queued = 3;
    outbox.flush();
    expect(carrier.sent).toEqual(['aa', 'bb', 'cc']);
  });

  it('asks a source only while there is room', () => {
    const carrier = new Carrier();
    carrier.queued = 10;
    const outbox = new Outbox(carrier, 10);
    const waiting = source(['x']);
    outbox.ready(waiting);
    expect(waiting.asked).toBe(0);
  });

  it('forgets a source that has nothing, until it says that it is ready again', () => {
    const carrier = new Carrier();
    const outbox = new Outbox(carrier, 10);
    const empty = source([]);
    outbox.ready(empty);
    outbox.flush();
    expect(empty.asked).toBe(1);
    outbox.ready(empty);
    expect(empty.asked).toBe(2);
  });

  it('sends nothing of a source that was removed', () => {
    const carrier = new Carrier();
    carrier.queued = 1;
    const outbox = new Outbox(carrier, 1);
    const removed = source(['x']);
    outbox.ready(removed);
    outbox.remove(removed);
    carrier.queued = 0;
    outbox.flush();
    expect(carrier.sent).toEqual([]);
  });

  it('bears a source that says it is ready while it is asked', () => {
    const carrier = new Carrier();
    const outbox = new Outbox(carrier, 100);
    const left = ['1', '2', '3'];
    const eager: FrameSource = {
      next() {
        if (left.length > 0) outbox.ready(eager);
        return left.shift();
      },
    };
    outbox.ready(eager);
    expect(carrier.sent).toEqual(['1', '2', '3']);
  });

  it('sends everything of every source in its order, and never more than one message beyond the mark', () => {
    const frames = fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 20 });
    fc.assert(
      fc.property(fc.array(frames, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 50 }), (lists, mark) => {
        const carrier = new Carrier();
        const outbox = new Outbox(carrier, mark);
        for (const [index, list] of lists.entries()) outbox.ready(source(list.map((text) => `${index}:${text}`)));
        do {
          expect(carrier.queued).toBeLessThan(mark + 22);
          carrier.queued = 0;
          const before = carrier.sent.length;
          outbox.flush();
          if (carrier.sent.length === before) break;
        } while (carrier.queued > 0);
        for (const [index, list] of lists.entries()) {
          const own = carrier.sent.filter((text) => text.startsWith(`${index}:`));
          expect(own).toEqual(list.map((text) => `${index}:${text}`));
        }
      }),
    );
  });
});
