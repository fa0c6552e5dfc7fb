/** One `fs/watch`: when its changes are looked at and told. */
import { limits, type ParamsOf } from '@exec-server/protocol';
import type { Clock } from '../../clock.js';
import { type BytePath, pathUri } from '../../paths.js';
import { ChangeBatch } from './changeBatch.js';
import { type PathBudget, WatchedTree } from './watchedTree.js';

export interface TreeWatchHost {
  readonly clock: Clock;
  readonly budget: PathBudget;
  /** Whether the client takes another notification now; `drained` is called when it may again. */
  hasRoom(): boolean;
  tell(params: { changes: object[]; overflow?: true; ended?: string }): void;
  /** It has told that it has ended. */
  ended(): void;
  /** A fault of the server. */
  fault(error: unknown): void;
}

export class TreeWatch {
  readonly #tree: WatchedTree;
  readonly #host: TreeWatchHost;
  readonly #batch = new ChangeBatch(limits.MAX_WATCH_CHANGES);
  /** The opening, or the last settling. Never rejects. */
  #work: Promise<unknown> = Promise.resolve();
  #settling = false;
  #cancelTimer: (() => void) | undefined;
  #answered = false;
  #ended: string | undefined;
  #over = false;

  constructor(path: BytePath, { recursive }: Pick<ParamsOf<'fs/watch'>, 'recursive'>, host: TreeWatchHost) {
    this.#host = host;
    this.#tree = new WatchedTree(path, recursive ?? true, host.budget, {
      touched: () => this.#schedule(),
      changed: (change) => this.#batch.add(change),
      lost: () => this.#batch.lost(),
    });
  }

  /** Settles when every later change will be told. */
  async open(): Promise<void> {
    const opening = this.#tree.open();
    this.#work = opening.catch(() => undefined);
    await opening;
  }

  /** The client knows that it watches; what has changed since `open` is told from now on. */
  start(): void {
    this.#answered = true;
    if (this.#tree.isTouched) this.#schedule();
  }

  /** The transport may have room. */
  drained(): void {
    this.#flush();
  }

  /** Resolves when nothing of it is left; never rejects. */
  async end(): Promise<void> {
    this.#over = true;
    this.#cancelTimer?.();
    this.#tree.close();
    await this.#work;
  }

  #schedule(): void {
    if (this.#over || !this.#answered || this.#settling || this.#ended !== undefined) return;
    this.#cancelTimer ??= this.#host.clock.after(limits.WATCH_BATCH_MS, () => {
      this.#cancelTimer = undefined;
      this.#settling = true;
      this.#work = this.#settle().catch((error: unknown) => this.#host.fault(error));
    });
  }

  async #settle(): Promise<void> {
    try {
      this.#ended = await this.#tree.settle();
    } catch (error) {
      this.#ended = 'a fault of the server';
      throw error;
    } finally {
      this.#settling = false;
      if (this.#ended !== undefined) this.#tree.close();
      this.#flush();
      if (this.#tree.isTouched) this.#schedule();
    }
  }

  /** While the client does not take what it was told, changes are collapsed further. */
  #flush(): void {
    if (this.#over || !this.#answered || this.#settling || !this.#host.hasRoom()) return;
    const ended = this.#ended;
    if (this.#batch.isEmpty && ended === undefined) return;
    const { changes, overflow } = this.#batch.take();
    this.#host.tell({
      changes: changes.map(({ kind, path, isDirectory }) => ({ kind, path: pathUri(path), isDirectory })),
      ...(overflow ? { overflow: true as const } : {}),
      ...(ended === undefined ? {} : { ended }),
    });
    if (ended === undefined) return;
    this.#over = true;
    this.#host.ended();
  }
}
