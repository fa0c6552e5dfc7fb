/** The watches of one connection, by the ids its client chose. They end with it. */
import { limits, type ParamsOf, WireError } from '@exec-server/protocol';
import type { Clock } from '../../clock.js';
import type { BytePath } from '../../paths.js';
import { checkFileId } from '../sessionFiles.js';
import { MissingWatch } from './missingWatch.js';
import { TreeWatch } from './treeWatch.js';
import type { PathBudget } from './watchedTree.js';

export interface WatchesHost {
  readonly notify: (method: string, params: object) => void;
  /** Whether the transport takes another notification now. */
  readonly hasRoom: () => boolean;
}

export class Watches {
  readonly #host: WatchesHost;
  readonly #watches = new Map<string, TreeWatch>();
  /** Watches that were let go of and are not closed yet. */
  readonly #ending = new Set<Promise<void>>();
  #pathsLeft: number = limits.WATCHED_PATHS_PER_CONNECTION;
  readonly #budget: PathBudget = {
    take: () => {
      if (this.#pathsLeft <= 0) return false;
      this.#pathsLeft -= 1;
      return true;
    },
    give: (paths) => {
      this.#pathsLeft += paths;
    },
  };
  #missing: MissingWatch | undefined;
  #lastMissingId = 0;
  #ended = false;

  constructor(host: WatchesHost) {
    this.#host = host;
  }

  get size(): number {
    return this.#watches.size + (this.#missing === undefined ? 0 : 1);
  }

  /**
   * Takes the id at once; settles when every later change of the tree is noticed. The returned function lets it tell them: the client
   * knows of its watch.
   */
  async watch(
    { watchId, recursive }: Pick<ParamsOf<'fs/watch'>, 'watchId' | 'recursive'>,
    path: BytePath,
    server: { readonly clock: Clock; readonly fault: (error: unknown) => void },
  ): Promise<() => void> {
    this.#check(watchId);
    const watch: TreeWatch = new TreeWatch(
      path,
      { recursive },
      {
        clock: server.clock,
        budget: this.#budget,
        hasRoom: this.#host.hasRoom,
        tell: (params) => this.#host.notify('fs/changed', { watchId, ...params }),
        ended: () => this.#forget(watchId, watch),
        fault: server.fault,
      },
    );
    this.#watches.set(watchId, watch);
    try {
      await watch.open();
    } catch (error) {
      this.#forget(watchId, watch);
      this.#close(watch);
      throw error;
    }
    if (this.#watches.get(watchId) === watch) return () => watch.start();
    throw this.#ended
      ? connectionEnded()
      : new WireError('invalidArgument', `watch \`${watchId}\` was ended meanwhile`);
  }

  /** An unknown id is fine: its watch has ended. */
  unwatch(watchId: string): void {
    const watch = this.#watches.get(watchId);
    if (watch === undefined) return;
    this.#forget(watchId, watch);
    this.#close(watch);
  }

  /**
   * Replaces the watch before it unless the id is not higher than that one's. Resolves with undefined where nothing is watched, as a
   * path exists already; else with a function that lets it tell.
   */
  async watchMissing(watchId: number, paths: readonly BytePath[]): Promise<(() => void) | undefined> {
    if (this.#ended) throw connectionEnded();
    if (watchId <= this.#lastMissingId) return undefined;
    this.#lastMissingId = watchId;
    this.#missing?.end();
    this.#missing = undefined;
    if (paths.length === 0 || paths.length > limits.MAX_MISSING_PATHS) return undefined;
    const watch: MissingWatch = new MissingWatch(paths, () => {
      if (this.#missing === watch) this.#missing = undefined;
      this.#host.notify('fs/missingChanged', { watchId });
    });
    this.#missing = watch;
    const isWatching = await watch.open();
    if (this.#missing !== watch) return undefined;
    if (isWatching) return () => watch.start();
    this.#missing = undefined;
    return undefined;
  }

  /** The transport may have room. */
  drained(): void {
    for (const watch of this.#watches.values()) watch.drained();
  }

  /** The connection is over. Resolves when nothing is watched any more; never rejects. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#missing?.end();
    this.#missing = undefined;
    for (const watch of this.#watches.values()) this.#close(watch);
    this.#watches.clear();
    await Promise.all(this.#ending);
  }

  #check(watchId: string): void {
    checkFileId(watchId, 'watchId');
    if (this.#ended) throw connectionEnded();
    if (this.#watches.has(watchId)) {
      throw new WireError('invalidArgument', `watch \`${watchId}\` already exists`, { field: 'watchId' });
    }
    const limit = limits.WATCHES_PER_CONNECTION;
    if (this.#watches.size + this.#ending.size < limit) return;
    throw new WireError('tooManyWatches', `at most ${limit} watches may be open per connection`, { limit });
  }

  #forget(watchId: string, watch: TreeWatch): void {
    if (this.#watches.get(watchId) === watch) this.#watches.delete(watchId);
  }

  #close(watch: TreeWatch): void {
    // `end` never rejects.
    const ending: Promise<void> = watch.end().then(() => void this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function connectionEnded(): WireError {
  return new WireError('sessionEnded', 'the connection has ended');
}
