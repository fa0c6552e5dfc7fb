import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { Confirmations } from './confirmations.js';

class Rig {
  readonly asked: (() => void)[] = [];
  readonly acked: number[] = [];
  readonly confirmations = new Confirmations((arrived) => this.asked.push(arrived));
  readonly source = { acked: (seq: number) => void this.acked.push(seq) };

  send(seq: number, bytes = 100): void {
    this.confirmations.sent(this.source, seq);
    this.confirmations.counted(bytes);
    this.confirmations.ask();
  }

  answer(): void {
    this.asked.shift()?.();
  }
}

describe('what a client that acknowledges nothing has', () => {
  it('is asked for behind the first event, and again when that is answered and more was sent', () => {
    const rig = new Rig();
    rig.send(1);
    rig.send(2);
    rig.send(3);
    expect(rig.asked).toHaveLength(1);
    rig.answer();
    expect(rig.acked).toEqual([1]);
    rig.answer();
    expect(rig.acked).toEqual([1, 3]);
    expect(rig.asked).toEqual([]);
  });

  it('is asked for in between when much is sent', () => {
    const rig = new Rig();
    rig.send(1);
    rig.send(2, limits.CONFIRM_EVERY_BYTES);
    rig.send(3);
    expect(rig.asked).toHaveLength(2);
    rig.answer();
    rig.answer();
    expect(rig.acked).toEqual([1, 2]);
  });

  it('is not asked for when nothing was sent', () => {
    const rig = new Rig();
    rig.confirmations.counted(limits.CONFIRM_EVERY_BYTES);
    rig.confirmations.ask();
    expect(rig.asked).toEqual([]);
  });

  it('is of no interest when the connection is over', () => {
    const rig = new Rig();
    rig.send(1);
    rig.confirmations.end();
    rig.answer();
    rig.send(2);
    expect([rig.acked, rig.asked]).toEqual([[], []]);
  });
});
