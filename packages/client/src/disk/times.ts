/** A time as the calls of the host take it. Pure. */

/** They cut off what a number of seconds is short of its last digit; half a microsecond more keeps the millisecond. */
const NUDGE_MS = 0.0005;

/** `ms`: since 1970, whole. */
export function secondsOf(ms: number): number {
  return (ms + NUDGE_MS) / 1000;
}
