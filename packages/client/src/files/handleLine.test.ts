import { describe, expect, it } from 'vitest';
import { HandleLine } from './handleLine.js';

/** Those who wait, and which of them were let go on. */
function crowd(line: HandleLine<object>, on: object, count: number): { went: number[]; forget: (() => void)[] } {
  const went: number[] = [];
  const forget = Array.from({ length: count }, (_, index) => {
    const wish = line.room(on);
    void wish.granted.then(() => went.push(index));
    return () => wish.forget();
  });
  return { went, forget };
}

describe('the line for handles', () => {
  it('lets one go on for each handle that is closed, in order', async () => {
    const [line, on] = [new HandleLine(), {}];
    for (const id of ['a', 'b', 'c']) line.opened(on, id);
    const { went } = crowd(line, on, 3);
    line.closed(on, 'a');
    line.closed(on, 'a');
    await Promise.resolve();
    expect(went).toEqual([0]);
    line.closed(on, 'b');
    await Promise.resolve();
    expect(went).toEqual([0, 1]);
  });

  it('passes the turn of one who gave up to the next', async () => {
    const [line, on] = [new HandleLine(), {}];
    line.opened(on, 'a');
    const { went, forget } = crowd(line, on, 3);
    forget[1]?.();
    line.closed(on, 'a');
    forget[0]?.();
    await Promise.resolve();
    expect(went).toEqual([0, 2]);
  });

  it('makes nobody wait for a handle that nobody can close', async () => {
    const [line, on] = [new HandleLine(), {}];
    line.opening(on, 'a');
    line.opening(on, 'b');
    expect(line.refused(on, 'a')).toBe(true);
    const { went } = crowd(line, on, 2);
    expect(line.refused(on, 'b')).toBe(false);
    await Promise.resolve();
    expect(went).toEqual([0, 1]);
  });

  it('puts who comes later behind those who wait, on each connection by itself', async () => {
    const [line, on] = [new HandleLine(), {}];
    line.opened(on, 'a');
    line.opened(on, 'b');
    const { went } = crowd(line, on, 1);
    const later = line.turn(on);
    void later.granted.then(() => went.push(9));
    await line.turn({}).granted;
    line.closed(on, 'b');
    line.closed(on, 'a');
    await Promise.resolve();
    expect(went).toEqual([0, 9]);
  });
});
