/**
 * Changes that wait to be told, collapsed by path: what was told before against what is there now. What was created and removed
 * between two tellings is not told; a folder that was replaced is told as removed and created. Bounded. Pure.
 */
import type { BytePath } from '../../paths.js';

export type ChangeKind = 'created' | 'modified' | 'removed';

export interface Change {
  readonly kind: ChangeKind;
  readonly path: BytePath;
  readonly isDirectory: boolean;
}

interface Pending {
  /** What the client was told is there: a folder or not; undefined for nothing. */
  readonly before: boolean | undefined;
  readonly after: boolean | undefined;
  /** Another one took the place of what was there. */
  readonly replaced: boolean;
}

export class ChangeBatch {
  readonly #maxChanges: number;
  #pending = new Map<BytePath, Pending>();
  #overflow = false;

  constructor(maxChanges: number) {
    this.#maxChanges = maxChanges;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0 && !this.#overflow;
  }

  add({ kind, path, isDirectory }: Change): void {
    const after = kind === 'removed' ? undefined : isDirectory;
    const known = this.#pending.get(path);
    if (known !== undefined) {
      this.#pending.delete(path);
      const before = known.before;
      // To the end: what is told of a folder stands before what is told of the one that replaced it.
      if (before !== undefined || after !== undefined) {
        this.#pending.set(path, { before, after, replaced: known.replaced || kind === 'removed' });
      }
      return;
    }
    if (this.#pending.size >= this.#maxChanges) {
      this.#overflow = true;
      return;
    }
    this.#pending.set(path, {
      before: kind === 'created' ? undefined : isDirectory,
      after,
      replaced: kind === 'removed',
    });
  }

  /** Changes were missed or dropped. */
  lost(): void {
    this.#overflow = true;
  }

  /** What there is to tell, in the order of the last change of each path; empties the batch. */
  take(): { readonly changes: Change[]; readonly overflow: boolean } {
    const changes = [...this.#pending].flatMap(([path, pending]) => told(path, pending));
    const overflow = this.#overflow;
    this.#pending = new Map();
    this.#overflow = false;
    return { changes, overflow };
  }
}

function told(path: BytePath, { before, after, replaced }: Pending): Change[] {
  const one = (kind: ChangeKind, isDirectory: boolean): Change => ({ kind, path, isDirectory });
  if (before === undefined) return after === undefined ? [] : [one('created', after)];
  if (after === undefined) return [one('removed', before)];
  if (before === after && !(replaced && before)) return [one('modified', before)];
  return [one('removed', before), one('created', after)];
}
