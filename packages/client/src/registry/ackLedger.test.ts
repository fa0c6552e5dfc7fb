import { limits } from '@exec-server/protocol';
import { expect, it } from 'vitest';
import type { OutputEvent } from '../events.js';
import { AckLedger } from './ackLedger.js';

const output = (seq: number, size: number): OutputEvent => ({
  type: 'output',
  seq,
  stream: 'stdout',
  bytes: new Uint8Array(size),
});

it('is due after so many consumed bytes', () => {
  const ledger = new AckLedger(0, 100);
  for (let seq = 1; seq <= 5; seq++) ledger.released(output(seq, 40));
  expect(ledger.consumed(2)).toBeUndefined();
  expect(ledger.consumed(3)).toBe(3);
  expect(ledger.consumed(5)).toBeUndefined();
});

it('is due at once on exit and close', () => {
  const ledger = new AckLedger(0, 100);
  ledger.released(output(1, 1));
  ledger.released({ type: 'exited', seq: 2, exitCode: 0 });
  ledger.released({ type: 'closed', seq: 3 });
  expect(ledger.consumed(1)).toBeUndefined();
  expect(ledger.consumed(2)).toBe(2);
  expect(ledger.consumed(3)).toBe(3);
});

it('never goes back, and never beyond what was released', () => {
  const ledger = new AckLedger(0, 1);
  ledger.released(output(1, 1));
  expect(ledger.consumed(9)).toBe(1);
  expect(ledger.consumed(0)).toBeUndefined();
  expect(ledger.take()).toBeUndefined();
});

it('says everything again after a cut', () => {
  const ledger = new AckLedger(0, 100);
  ledger.released(output(1, 1));
  ledger.consumed(1);
  expect(ledger.take()).toBe(1);
  ledger.forgetSent();
  expect(ledger.take()).toBe(1);
});

it('has nothing to say about a process that gave nothing', () => {
  const ledger = new AckLedger(0, 100);
  ledger.forgetSent();
  expect(ledger.take()).toBeUndefined();
});

it('covers a gap as one event', () => {
  const ledger = new AckLedger(0, 1);
  ledger.released({ type: 'gap', fromSeq: 1, throughSeq: 9 });
  ledger.released(output(10, 5));
  expect(ledger.consumed(10)).toBe(10);
});

it('is due after many tiny events as well', () => {
  const ledger = new AckLedger(0);
  for (let seq = 1; seq <= limits.ACK_EVERY_EVENTS; seq += 1) {
    ledger.released(output(seq, 1));
    expect(ledger.consumed(seq)).toBe(seq < limits.ACK_EVERY_EVENTS ? undefined : seq);
  }
});
