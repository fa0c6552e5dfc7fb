/** `fs/pack` and `fs/unpack`: archives that are read and written by the calls for open files. */
import { mkdir, realpath, stat } from 'node:fs/promises';
import type { ParamsOf, ResultOf } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath, nativeBytes, pathOf } from '../paths.js';
import { wantedParts } from './archive/entryNames.js';
import { packedEntries } from './archive/packEntries.js';
import { PackHandle } from './archive/packHandle.js';
import { UnpackedFolder } from './archive/unpackedFolder.js';
import { UnpackHandle } from './archive/unpackHandle.js';
import { errnoError, onPath } from './errno.js';
import { refuseSandbox } from './sandbox.js';

export function packTree({ files }: HandlerContext, params: ParamsOf<'fs/pack'>): Parked<ResultOf<'fs/pack'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const names = params.names ?? undefined;
  for (const name of names ?? []) wantedParts(name);
  const { handleId, includeParent, followSymlinks } = params;
  const options = { names, includeParent: includeParent ?? false, followSymlinks: followSymlinks ?? false };
  const open = async (): Promise<PackHandle> => {
    const stats = await onPath(path, () => stat(nativeBytes(path)));
    if (names !== undefined && !stats.isDirectory()) throw errnoError('ENOTDIR', path);
    return new PackHandle(packedEntries(path, stats, options));
  };
  const opened = files.handles.open(handleId, () => files.turn({ reads: [path] }, open));
  return new Parked(opened.then(() => ({ handleId })));
}

export function unpackTree(
  { files, server }: HandlerContext,
  params: ParamsOf<'fs/unpack'>,
): Parked<ResultOf<'fs/unpack'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const { handleId, overwrite } = params;
  const open = async (): Promise<UnpackHandle> => {
    const folder = await onPath(path, async () => {
      await mkdir(nativeBytes(path), { recursive: true });
      return pathOf(await realpath(nativeBytes(path), { encoding: 'buffer' }));
    });
    return new UnpackHandle(new UnpackedFolder(server.tempFiles, folder, overwrite ?? true));
  };
  const opened = files.handles.open(handleId, () => files.turn({ writes: [path] }, open));
  return new Parked(opened.then(() => ({ handleId })));
}
