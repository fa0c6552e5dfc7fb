import { describe, expect, it } from 'vitest';
import { refuseProcessOne } from './serve.js';

describe('serving as process 1', () => {
  it('is refused with what to do instead, unless it is allowed', () => {
    expect(() => refuseProcessOne(1, false)).toThrow(/zombies.*--init.*--allow-pid-1/);
    expect(() => refuseProcessOne(1, true)).not.toThrow();
    expect(() => refuseProcessOne(2, false)).not.toThrow();
  });
});
