import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { addMark, hasMark, lifePattern, MARK_VARIABLE, MarkSource } from './mark.js';

function environ(...variables: string[]): Buffer {
  return Buffer.from(variables.map((variable) => `${variable}\0`).join(''), 'latin1');
}

describe('MarkSource', () => {
  it('gives each child of a server life its own mark', () => {
    const marks = new MarkSource('a1b2');
    expect([marks.next(), marks.next()]).toEqual(['a1b2-1', 'a1b2-2']);
  });

  it('refuses a life that would not be safe inside the list or a pattern', () => {
    for (const life of ['', 'a:b', 'a.b', 'a b', 'a=b', 'a*'])
      expect(() => new MarkSource(life)).toThrow(/server life/);
  });
});

describe('addMark', () => {
  it('keeps the marks of outer servers before its own', () => {
    expect(addMark(undefined, 'in-1')).toBe('in-1');
    expect(addMark('out-7', 'in-1')).toBe('out-7:in-1');
    expect(addMark('a-1:b-2', 'in-1')).toBe('a-1:b-2:in-1');
  });

  it('drops what is no mark and what is there twice', () => {
    expect(addMark(':a-1:: two words:$(x):in-1', 'in-1')).toBe('a-1:in-1');
  });

  it('forgets the outermost of very many, so that the value stays short', () => {
    const outer = Array.from({ length: 5000 }, (_, depth) => `life-${depth}`).join(':');
    const marks = addMark(outer, 'in-1').split(':');
    expect(marks).toHaveLength(65);
    expect(marks.slice(-2)).toEqual(['life-4999', 'in-1']);
  });
});

describe('hasMark', () => {
  it('finds a mark anywhere in the list, whole', () => {
    const bytes = environ('PATH=/bin', `${MARK_VARIABLE}=a-1:b-22:c-3`, 'HOME=/');
    expect(['a-1', 'b-22', 'c-3'].map((mark) => hasMark(bytes, mark))).toEqual([true, true, true]);
    expect(['a', 'b-2', '-22', 'a-1:b', '3', 'd-4'].map((mark) => hasMark(bytes, mark))).not.toContain(true);
  });

  it('finds it as the first and as the last variable, with and without the closing NUL', () => {
    expect(hasMark(environ(`${MARK_VARIABLE}=a-1`), 'a-1')).toBe(true);
    expect(hasMark(Buffer.from(`X=1\0${MARK_VARIABLE}=a-1`), 'a-1')).toBe(true);
    expect(hasMark(Buffer.alloc(0), 'a-1')).toBe(false);
  });

  it('is not misled by other names, values and empty lists', () => {
    const bytes = environ('A=a-1', `X_${MARK_VARIABLE}=a-1`, `B=${MARK_VARIABLE}=a-1`, `${MARK_VARIABLE}S=a-1`);
    expect(hasMark(bytes, 'a-1')).toBe(false);
    expect(hasMark(Buffer.concat([environ(`${MARK_VARIABLE}=`), bytes]), 'a-1')).toBe(false);
    expect(hasMark(Buffer.concat([bytes, environ(`${MARK_VARIABLE}=a-1`)]), 'a-1')).toBe(true);
  });

  it('looks at two megabytes of near misses in one pass', () => {
    const near = `${MARK_VARIABLE}=${'a-11:'.repeat(100_000)}`;
    const bytes = environ(`X=${`${MARK_VARIABLE}=a-1`.repeat(50_000)}`, near, `${MARK_VARIABLE}=a-1`);
    const begin = performance.now();
    expect(hasMark(bytes, 'a-1')).toBe(true);
    expect(performance.now() - begin).toBeLessThan(1000);
  });
});

describe.skipIf(process.platform === 'win32')('lifePattern', () => {
  it('lets grep find every mark of the life and none of another', () => {
    const finds = (...variables: string[]): boolean =>
      spawnSync('grep', ['-s', lifePattern('c0ffee')], { input: environ(...variables) }).status === 0;
    const own = addMark('out-1', new MarkSource('c0ffee').next());
    expect(finds('A=1', `${MARK_VARIABLE}=${own}`)).toBe(true);
    expect(finds(`${MARK_VARIABLE}=out-1:c0ffee-12:in-3`)).toBe(true);
    for (const other of ['c0ffee1-1', 'ac0ffee-1', 'out-1:1c0ffee-1', 'c0ffee', '']) {
      expect(finds(`${MARK_VARIABLE}=${other}`, 'X=c0ffee-1', 'B=2'), other).toBe(false);
    }
  });
});
