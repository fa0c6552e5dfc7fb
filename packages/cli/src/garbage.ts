/** Keeps the memory of a command that carries much flat: on a busy host the collector lags hundreds of megabytes behind. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Carried between two collections, which take some 10 ms each. */
const EVERY_BYTES = 32 * 1024 * 1024;

export class Garbage {
  #collect: (() => void) | undefined;
  #next = EVERY_BYTES;

  /** `bytes`: carried since the start. */
  carried(bytes: number): void {
    if (bytes < this.#next) return;
    this.#next = bytes + EVERY_BYTES;
    this.#collect ??= collector();
    this.#collect();
  }
}

/** The collector has no other door; a context that is made after the flag was set has it. */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  return typeof collect === 'function' ? () => void Reflect.apply(collect, undefined, []) : () => {};
}
