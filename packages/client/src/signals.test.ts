import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort } from './signals.js';

describe('a signal that many wait for', () => {
  it('has one listener, and tells each of those who still wait once', () => {
    const abort = new AbortController();
    const told: number[] = [];
    const forget = Array.from({ length: 30 }, (_, index) => onAbort(abort.signal, () => told.push(index)));
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    for (const stop of forget.slice(2)) stop();
    abort.abort();
    abort.abort();
    expect(told).toEqual([0, 1]);
  });

  it('is told at once where it has aborted', () => {
    const told: unknown[] = [];
    onAbort(AbortSignal.abort('why'), (reason) => told.push(reason));
    onAbort(undefined, () => told.push('never'));
    expect(told).toEqual(['why']);
  });
});
