// @ts-check
// How often things are done in a measure.

/** A fresh server has work of its own left (pools, compilation); it gets a moment between warm-up and measure. */
export const SETTLE_MS = 100;

/**
 * @param {number} full
 * @param {number} scale
 * @param {number} least
 */
export function scaled(full, scale, least) {
  return Math.max(least, Math.round(full * scale));
}

/**
 * @param {number} times
 * @param {() => Promise<number>} one
 */
export async function oneByOne(times, one) {
  /** @type {number[]} */
  const samples = [];
  for (let i = 0; i < times; i++) samples.push(await one());
  return samples;
}

/**
 * Does something `total` times, so many at a time.
 * @param {number} total
 * @param {number} atATime
 * @param {(index: number) => Promise<unknown>} one
 */
export async function inFlight(total, atATime, one) {
  let next = 0;
  const lane = async () => {
    while (next < total) {
      next += 1;
      await one(next - 1);
    }
  };
  await Promise.all(Array.from({ length: atATime }, lane));
}
