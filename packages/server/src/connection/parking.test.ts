import { describe, expect, it } from 'vitest';
import { Parking } from './parking.js';

function waiting(): { answer: Promise<string>; settle: (text: string) => void } {
  let settle: (text: string) => void = () => {};
  const answer = new Promise<string>((resolve) => {
    settle = resolve;
  });
  return { answer, settle };
}

describe('parking', () => {
  it('forgets a call when its answer comes', async () => {
    const parking = new Parking();
    const { answer, settle } = waiting();
    const parked = parking.park(answer, () => settle('released'));
    expect(parking.size).toBe(1);
    settle('news');
    expect(await parked.answer).toBe('news');
    expect(parking.size).toBe(0);
  });

  it('forgets a call whose answer is an error', async () => {
    const parking = new Parking();
    const parked = parking.park(Promise.reject(new Error('no room')), () => {});
    await expect(parked.answer).rejects.toThrow('no room');
    expect(parking.size).toBe(0);
  });

  it('releases every call at its end', async () => {
    const parking = new Parking();
    const calls = [waiting(), waiting()].map(({ answer, settle }) => parking.park(answer, () => settle('released')));
    parking.end();
    expect(parking.ended).toBe(true);
    expect(await Promise.all(calls.map((call) => call.answer))).toEqual(['released', 'released']);
    expect(parking.size).toBe(0);
  });

  it('releases at once what is parked after its end', async () => {
    const parking = new Parking();
    parking.end();
    const { answer, settle } = waiting();
    expect(await parking.park(answer, () => settle('released')).answer).toBe('released');
    expect(parking.size).toBe(0);
  });

  it('bears a second end', () => {
    const parking = new Parking();
    parking.end();
    expect(() => parking.end()).not.toThrow();
  });
});
