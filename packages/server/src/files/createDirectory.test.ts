import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Scratch } from '../../../../test/support/scratch.js';
import { pathOf } from '../paths.js';
import { createDirectory, type CreateOptions } from './createDirectory.js';

describe('making folders', () => {
  let scratch: Scratch;
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(() => scratch.remove());

  const create = (name: string, options: Partial<CreateOptions> = {}): Promise<void> =>
    createDirectory(pathOf(scratch.path(name)), { recursive: true, ...options });

  it('makes parents as well, and takes what is there', async () => {
    await create('a/b/c');
    await create('a/b/c');
    scratch.link('l', 'a');
    await create('l');
    await create('l/d');
    expect(scratch.names()).toEqual(['a', 'a/b', 'a/b/c', 'a/d', 'l']);
    expect(scratch.mode('a/b')).toBe(0o777 & ~process.umask());
  });

  it('refuses a file in the way, and without recursive everything that is there', async () => {
    scratch.file('f');
    scratch.folder('d');
    scratch.link('dangling', 'none');
    await expect(create('f')).rejects.toMatchObject({ reason: 'fileExists' });
    await expect(create('dangling')).rejects.toMatchObject({ reason: 'fileExists' });
    await expect(create('f/x')).rejects.toMatchObject({ reason: 'notDirectory' });
    await expect(create('d', { recursive: false })).rejects.toMatchObject({ reason: 'fileExists' });
    await expect(create('x/y', { recursive: false })).rejects.toMatchObject({ reason: 'fileNotFound' });
  });

  it('gives the permissions to the folder itself, and to none that was there', async () => {
    await create('a/b', { permissions: 0o707 });
    await create('a', { permissions: 0o700 });
    await create('c', { permissions: 0o1777, recursive: false });
    expect(['a', 'a/b', 'c'].map((name) => scratch.mode(name))).toEqual([0o777 & ~process.umask(), 0o707, 0o1777]);
  });

  it('makes one tree side by side', async () => {
    await Promise.all(Array.from({ length: 8 }, (_, index) => create(`a/b/c/d/${index}`)));
    expect(scratch.names('a/b/c/d')).toHaveLength(8);
  });
});
