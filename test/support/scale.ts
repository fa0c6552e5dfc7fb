/** Counts of a test: the short one for every run, the full one for `test:extended`. */
export const full = process.env['EXEC_SERVER_TEST_SCALE'] === 'full';

export function scaled(short: number, complete: number): number {
  return full ? complete : short;
}
