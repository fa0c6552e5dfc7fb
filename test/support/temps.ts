/** Temporary files of a server that is not there: nothing is listed with a guard. */
import { TempFiles } from '../../packages/server/src/files/tempFiles.js';

export function unguardedTemps(): TempFiles {
  return new TempFiles({ life: '0123456789abcdef', list: () => {}, unlist: () => {} });
}
