import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LogEvent } from './eventLog.js';
import { FrameEncoder } from './frames.js';

function decode(frame: string | Uint8Array): unknown {
  return JSON.parse(typeof frame === 'string' ? frame : new TextDecoder('utf-8', { fatal: true }).decode(frame));
}

const output = (bytes: Uint8Array): LogEvent => ({ kind: 'output', seq: 7, stream: 'stderr', bytes, offset: 0 });

describe('FrameEncoder', () => {
  it('writes output of any size and any process id as the notification it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 10_000, size: 'max' }), (id, bytes) => {
        expect(decode(new FrameEncoder(id).event(output(bytes)))).toEqual({
          method: 'process/output',
          params: { processId: id, seq: 7, stream: 'stderr', chunk: Buffer.from(bytes).toString('base64') },
        });
      }),
      { numRuns: 60 },
    );
  });

  it('hands large output over as bytes and small output as text, with the same meaning', () => {
    const encoder = new FrameEncoder('käse "☃"');
    const large = encoder.event(output(new Uint8Array(65_536).fill(3)));
    const small = encoder.event(output(new Uint8Array(3).fill(3)));
    expect(large).toBeInstanceOf(Uint8Array);
    expect(typeof small).toBe('string');
    expect(decode(large)).toMatchObject({ params: { processId: 'käse "☃"', seq: 7 } });
    expect(decode(small)).toMatchObject({ params: { processId: 'käse "☃"', chunk: 'AwMD' } });
  });

  it('tells exits, closes and gaps', () => {
    const encoder = new FrameEncoder('p');
    expect(
      decode(encoder.event({ kind: 'exited', seq: 2, exitCode: 137, signal: 'SIGKILL', reason: 'terminated' })),
    ).toEqual({
      method: 'process/exited',
      params: { processId: 'p', seq: 2, exitCode: 137, sandboxDenied: false, reason: 'terminated', signal: 'SIGKILL' },
    });
    expect(decode(encoder.event({ kind: 'exited', seq: 2, exitCode: 0, signal: undefined, reason: 'exited' }))).toEqual(
      {
        method: 'process/exited',
        params: { processId: 'p', seq: 2, exitCode: 0, sandboxDenied: false, reason: 'exited' },
      },
    );
    expect(decode(encoder.event({ kind: 'closed', seq: 3, reason: 'ended', holders: undefined }))).toEqual({
      method: 'process/closed',
      params: { processId: 'p', seq: 3, reason: 'ended' },
    });
    expect(decode(encoder.event({ kind: 'closed', seq: 3, reason: 'heldOpen', holders: 2 }))).toEqual({
      method: 'process/closed',
      params: { processId: 'p', seq: 3, reason: 'heldOpen', holders: 2 },
    });
    expect(decode(encoder.gap({ fromSeq: 1, throughSeq: 4, bytes: undefined }))).toEqual({
      method: 'process/gap',
      params: { processId: 'p', fromSeq: 1, throughSeq: 4 },
    });
  });
});
