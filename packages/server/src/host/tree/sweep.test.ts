import { describe, expect, it } from 'vitest';
import { type Clock, hostClock } from '../../clock.js';
import { sweepLife } from './sweep.js';

const LIFE = 'abcdef0123456789';
const impatient: Clock = {
  ...hostClock,
  after: (_ms, action) => {
    queueMicrotask(action);
    return () => {};
  },
};

function refusal(): Error {
  return Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
}

describe.runIf(process.platform === 'linux')('a sweep that the host refuses a list', () => {
  it('asks again', async () => {
    let asked = 0;
    await sweepLife(LIFE, impatient, () => {
      asked += 1;
      return asked < 3 ? Promise.reject(refusal()) : Promise.resolve([]);
    });
    expect(asked).toBe(3);
  });

  it('gives up with the refusal', async () => {
    const sweep = sweepLife(LIFE, impatient, () => Promise.reject(refusal()));
    await expect(sweep).rejects.toMatchObject({ code: 'EMFILE' });
  });
});
