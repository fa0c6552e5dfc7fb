import { expect, it } from 'vitest';
import { ClientError } from '../errors.js';
import { Waiters } from './waiters.js';

it('settles everybody who waits, once', async () => {
  const waiters = new Waiters<number>();
  const both = [waiters.add().promise, waiters.add().promise];
  waiters.resolve(1);
  waiters.resolve(2);
  expect(await Promise.all(both)).toEqual([1, 1]);
  const late = waiters.add().promise;
  waiters.reject(new ClientError('CLOSED', 'closed'));
  await expect(late).rejects.toMatchObject({ code: 'CLOSED' });
});

it('keeps nothing of a wait that was given up', () => {
  const waiters = new Waiters<number>();
  for (let poll = 0; poll < 100; poll += 1) waiters.add().forget();
  expect(waiters.size).toBe(0);
});
