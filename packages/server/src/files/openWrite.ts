/** `fs/open` with `mode: "replace"`: handles that write in place, or to a stage. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import { type BytePath, bytePath, nativeBytes } from '../paths.js';
import type { ConnectionFiles } from './connectionFiles.js';
import { syncFile, writeAll } from './content.js';
import { identityOf, permissionsOf, versionOf } from './detail.js';
import { errnoError, onPath } from './errno.js';
import type { CloseHow, OpenHandle } from './fileHandles.js';
import { refuseLinks } from './noFollow.js';
import { checkPermissions } from './permissions.js';
import { refuseSandbox } from './sandbox.js';
import { checkFileId, type SessionFiles } from './sessionFiles.js';
import type { HeldStage } from './stages.js';
import { statsOf } from './target.js';
import type { TempFiles } from './tempFiles.js';

type Params = ParamsOf<'fs/open'>;
type Result = ResultOf<'fs/open'>;

export interface OpenedForWriting {
  /** Undefined for a stage that was committed before. */
  readonly handle: OpenHandle | undefined;
  readonly result: Result;
}

/** What opening needs of its `HandlerContext`. */
export interface WriteContext {
  readonly files: ConnectionFiles;
  readonly session: { readonly files: SessionFiles };
  readonly server: { readonly tempFiles: TempFiles };
}

/** Works in the turn of the path, so it is not to be called in one. Throws WireError. */
export async function openForWriting(context: WriteContext, params: Params): Promise<OpenedForWriting> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const permissions = checkPermissions(params.permissions);
  const { stage } = params;
  return stage === null || stage === undefined
    ? context.files.turn({ writes: [path] }, () => openInPlace(path, params, permissions))
    : openStage(context, path, stage, params, permissions);
}

async function openInPlace(path: BytePath, params: Params, permissions: number | undefined): Promise<OpenedForWriting> {
  const follow = params.followSymlinks ?? true;
  if (!follow) await refuseLinks(path);
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const how =
    (params.keep === true ? 0 : O_TRUNC) | (params.exclusive === true ? O_EXCL : 0) | (follow ? 0 : O_NOFOLLOW);
  return onPath(path, async () => {
    const isNew = permissions !== undefined && (await statsOf(path)) === undefined;
    // Without O_NONBLOCK a FIFO nobody reads would hold a thread of the host for ever.
    const file = await open(nativeBytes(path), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | how, 0o666);
    try {
      if (isNew) await file.chmod(permissions);
      const stats = await file.stat();
      const hasPositions = stats.isFile() || stats.isBlockDevice();
      const detail = params.detail === true ? await detailOf(file) : {};
      return { handle: inPlaceHandle(path, file, hasPositions), result: { handleId: params.handleId, ...detail } };
    } catch (error) {
      await file.close();
      throw error;
    }
  });
}

async function openStage(
  { session, server, files }: WriteContext,
  path: BytePath,
  id: string,
  params: Params,
  permissions: number | undefined,
): Promise<OpenedForWriting> {
  checkFileId(id, 'stage');
  if (params.keep === true) {
    throw new WireError('invalidArgument', '`keep` is for writing in place, and `stage` is not', { field: 'keep' });
  }
  const opened = await session.files.stages.open({
    id,
    path,
    followSymlinks: params.followSymlinks ?? true,
    options: { exclusive: params.exclusive ?? false, permissions },
    holder: files,
    turn: (action) => files.turn({ writes: [path] }, action),
    temps: server.tempFiles,
  });
  const { handleId } = params;
  if (opened.kind === 'committed') return { handle: undefined, result: { handleId, committed: opened.written } };
  const { stage } = opened;
  try {
    const { size } = await stage.temp.file.stat();
    const detail = params.detail === true ? await detailOf(stage.temp.file) : {};
    return { handle: stageHandle(path, stage, files), result: { handleId, stagedBytes: size, ...detail } };
  } catch (error) {
    stage.leave();
    throw error;
  }
}

function inPlaceHandle(path: BytePath, file: FileHandle, hasPositions: boolean): OpenHandle {
  return {
    write: (offset, bytes) => writeAt(path, file, bytes, hasPositions ? offset : null),
    close: ({ fsync }) =>
      onPath(path, async () => {
        try {
          if (fsync === true) await syncFile(file);
        } finally {
          await file.close();
        }
        return {};
      }),
    drop: async () => {
      // Nobody is left to be told.
      await file.close().catch(() => undefined);
    },
  };
}

function stageHandle(path: BytePath, stage: HeldStage, files: ConnectionFiles): OpenHandle {
  const { file } = stage.temp;
  return {
    write: (offset, bytes) => writeAt(path, file, bytes, offset),
    close: async ({ commit, keepStage, fsync, modifiedAtMs }: CloseHow) => {
      if (commit === true) {
        const how = { fsync: fsync ?? false, modifiedAtMs: modifiedAtMs ?? undefined };
        return files.answers.onDisk(() => stage.commit(how));
      }
      if (keepStage !== true) {
        await stage.drop();
        return {};
      }
      try {
        if (fsync === true) await onPath(path, () => syncFile(file));
      } finally {
        stage.leave();
      }
      return {};
    },
    inOrder: (action) => files.inOrder({ writes: [path] }, action),
    drop: async () => stage.leave(),
  };
}

function writeAt(path: BytePath, file: FileHandle, bytes: Uint8Array, offset: number | null): Promise<void> {
  return onPath(path, async () => {
    // Beyond what the host counts with, and no file system has such files.
    if (offset !== null && !Number.isSafeInteger(offset + bytes.length)) throw errnoError('EFBIG', path);
    // The session ended: its stages are closed.
    if (file.fd < 0) throw new WireError('sessionEnded', 'the session has ended, and its staged writes with it');
    await writeAll(file, bytes, offset);
  });
}

async function detailOf(file: FileHandle): Promise<Omit<Result, 'handleId'>> {
  const stats = await file.stat({ bigint: true });
  return {
    identity: identityOf(stats),
    version: versionOf(stats),
    size: Number(stats.size),
    mode: permissionsOf(stats),
  };
}
