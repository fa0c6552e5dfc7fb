/**
 * Staged writes of one session: blocks go to a temporary file, which takes the place of its target when it is committed. They
 * outlive connections; at most one handle has a stage at a time.
 */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { limits, WireError } from '@exec-server/protocol';
import { type BytePath, nativeBytes, parentOf, pathOf } from '../paths.js';
import { onPath } from './errno.js';
import { refuseLinks } from './noFollow.js';
import { commitTemp, type ReplaceOptions, tempBeside, type Written } from './replaceFile.js';
import { findTarget } from './target.js';
import type { TempFile, TempFiles } from './tempFiles.js';

/** The connection a handle belongs to. */
interface StageHolder {
  readonly ended: boolean;
}

export interface StageRequest {
  readonly id: string;
  readonly path: BytePath;
  readonly followSymlinks: boolean;
  readonly options: Pick<ReplaceOptions, 'exclusive' | 'permissions'>;
  readonly holder: StageHolder;
  /** Runs work on the path in its turn. */
  readonly turn: <T>(action: () => Promise<T>) => Promise<T>;
  readonly temps: TempFiles;
}

interface Hold {
  readonly by: StageHolder;
  /** Its end is under way: it is waited for although its connection lives. */
  ending: boolean;
  /** Resolves when the stage is free, or over. */
  readonly released: Promise<void>;
  readonly release: () => void;
}

interface Stage {
  readonly path: BytePath;
  hold: Hold | undefined;
  /** Undefined while it is being made. */
  temp: TempFile | undefined;
}

/** A stage in the hands of one handle. */
export interface HeldStage {
  readonly temp: TempFile;
  /** Puts it in the place of its target, and is over; when that fails the stage stays. */
  commit(how: Pick<ReplaceOptions, 'fsync' | 'modifiedAtMs'>): Promise<Written>;
  /** Removes it. */
  drop(): Promise<void>;
  /** Leaves it for another handle. */
  leave(): void;
}

export type StageOpened =
  | { readonly kind: 'held'; readonly stage: HeldStage }
  | { readonly kind: 'committed'; readonly written: Written };

export class Stages {
  readonly #stages = new Map<string, Stage>();
  /** What commits answered; oldest first. */
  readonly #committed = new Map<string, { readonly path: BytePath; readonly written: Written }>();
  #ended = false;

  get size(): number {
    return this.#stages.size;
  }

  /**
   * Goes on with a stage, or begins it. Waits for a handle of a connection that has ended, and for a commit; not to be called
   * in the turn of the path, which a commit waits for. Throws WireError.
   */
  async open(request: StageRequest): Promise<StageOpened> {
    const { id, path } = request;
    for (;;) {
      this.#refuseWhenEnded();
      const committed = this.#committed.get(id);
      if (committed !== undefined) {
        refuseOtherPath(id, committed.path, path);
        return { kind: 'committed', written: committed.written };
      }
      const stage = this.#stages.get(id);
      if (stage === undefined) return { kind: 'held', stage: await this.#begin(request) };
      refuseOtherPath(id, stage.path, path);
      const { hold, temp } = stage;
      if (hold === undefined && temp !== undefined) {
        stage.hold = newHold(request.holder);
        return { kind: 'held', stage: this.#held(request, stage, stage.hold, temp) };
      }
      if (hold !== undefined && !hold.by.ended && !hold.ending) {
        throw new WireError('invalidArgument', `stage \`${id}\` is open on another handle`, { field: 'stage' });
      }
      await hold?.released;
    }
  }

  /** The session is over. Resolves when every temporary file is removed; never rejects. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(
      [...this.#stages.values()].map(async ({ hold, temp }) => {
        // A commit under way, and a stage that is being made, come to their end; a handle that is merely open does not.
        if (hold !== undefined && (hold.ending || temp === undefined)) await hold.released;
        await temp?.remove();
      }),
    );
    this.#stages.clear();
    this.#committed.clear();
  }

  async #begin(request: StageRequest): Promise<HeldStage> {
    const { id, path, holder } = request;
    if (this.#stages.size >= limits.STAGES_PER_SESSION) {
      const most = limits.STAGES_PER_SESSION;
      throw new WireError('tooManyHandles', `at most ${most} staged writes may be kept per session`, { limit: most });
    }
    const hold = newHold(holder);
    const stage: Stage = { path, hold, temp: undefined };
    this.#stages.set(id, stage);
    try {
      const temp = await request.turn(() => createTemp(request));
      if (this.#ended) await temp.remove();
      this.#refuseWhenEnded();
      stage.temp = temp;
      return this.#held(request, stage, hold, temp);
    } catch (error) {
      this.#over(id, stage, hold);
      throw error;
    }
  }

  #held(
    { id, path, followSymlinks, options, temps }: StageRequest,
    stage: Stage,
    hold: Hold,
    temp: TempFile,
  ): HeldStage {
    const begin = (): void => {
      this.#refuseWhenEnded();
      hold.ending = true;
    };
    return {
      temp,
      commit: async (how) => {
        begin();
        try {
          if (!followSymlinks) await refuseLinks(path);
          const written = await commitTemp(temps, temp, path, { ...options, ...how });
          try {
            // Network file systems tell of a failed write here at the latest.
            await onPath(path, () => temp.file.close());
            this.#remember(id, path, written);
          } finally {
            await temp.remove();
            this.#over(id, stage, hold);
          }
          return written;
        } finally {
          free(stage, hold);
        }
      },
      drop: async () => {
        begin();
        await temp.remove();
        this.#over(id, stage, hold);
      },
      leave: () => free(stage, hold),
    };
  }

  #remember(id: string, path: BytePath, written: Written): void {
    this.#committed.set(id, { path, written });
    for (const oldest of this.#committed.keys()) {
      if (this.#committed.size <= limits.REMEMBERED_OPERATIONS) break;
      this.#committed.delete(oldest);
    }
  }

  #over(id: string, stage: Stage, hold: Hold): void {
    if (this.#stages.get(id) === stage) this.#stages.delete(id);
    free(stage, hold);
  }

  #refuseWhenEnded(): void {
    if (this.#ended) throw new WireError('sessionEnded', 'the session has ended, and its staged writes with it');
  }
}

/** Beside its target; where that cannot be, and it may be written in place, in the temporary folder of the host. */
async function createTemp({ path, followSymlinks, options, temps }: StageRequest): Promise<TempFile> {
  if (!followSymlinks) await refuseLinks(path);
  return onPath(path, async () => {
    const target = await findTarget(path, options);
    const beside = target.kind === 'other' ? undefined : await tempBeside(temps, target);
    // Of a file that cannot be created the caller learns before it has sent its content.
    if (target.kind === 'new' && beside === undefined) await access(nativeBytes(parentOf(target.path)), constants.W_OK);
    return beside ?? temps.create(pathOf(tmpdir()));
  });
}

function newHold(by: StageHolder): Hold {
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { by, ending: false, released, release };
}

function free(stage: Stage, hold: Hold): void {
  if (stage.hold === hold) stage.hold = undefined;
  hold.release();
}

function refuseOtherPath(id: string, known: BytePath, path: BytePath): void {
  if (known === path) return;
  throw new WireError('invalidArgument', `stage \`${id}\` belongs to another path`, { field: 'path' });
}
