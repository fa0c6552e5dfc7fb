/** `fs/writeFile`, `fs/createDirectory`, `fs/remove`. */
import { decodeBase64, type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath } from '../paths.js';
import { writeAll } from './content.js';
import { createDirectory as makeDirectory } from './createDirectory.js';
import { refuseLinks } from './noFollow.js';
import { changeOnce } from './operations.js';
import { checkPermissions } from './permissions.js';
import { removePath as remove } from './remove.js';
import { replaceFile, type ReplaceOptions } from './replaceFile.js';
import { refuseSandbox } from './sandbox.js';

export function writeFile(context: HandlerContext, params: ParamsOf<'fs/writeFile'>): Parked<ResultOf<'fs/writeFile'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const decoded = decodeBase64(params.dataBase64);
  if (!decoded.ok) {
    const message = `fs/writeFile requires valid base64 dataBase64: ${decoded.detail}`;
    throw new WireError('invalidArgument', message, { field: 'dataBase64' });
  }
  const { bytes } = decoded;
  const options: ReplaceOptions = {
    exclusive: params.exclusive ?? false,
    permissions: checkPermissions(params.permissions),
    fsync: params.fsync ?? false,
    inPlace: params.inPlace ?? false,
    append: params.append ?? false,
  };
  return changeOnce(context, params, { writes: [path] }, async () => {
    if (params.followSymlinks === false) await refuseLinks(path);
    return replaceFile(context.server.tempFiles, path, (file) => writeAll(file, bytes), options);
  });
}

export function createDirectory(
  context: HandlerContext,
  params: ParamsOf<'fs/createDirectory'>,
): Parked<ResultOf<'fs/createDirectory'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const permissions = checkPermissions(params.permissions);
  const recursive = params.recursive ?? true;
  return changeOnce(context, params, { writes: [path] }, async () => {
    // A link in the last place is in the way of `mkdir` itself.
    if (params.followSymlinks === false) await refuseLinks(path, recursive ? 'ENOTDIR' : 'pass');
    await makeDirectory(path, { recursive, permissions });
    return {};
  });
}

export function removePath(context: HandlerContext, params: ParamsOf<'fs/remove'>): Parked<ResultOf<'fs/remove'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const recursive = params.recursive ?? true;
  if (recursive && params.followSymlinks === false) {
    throw new WireError('fileFailed', 'recursive no-follow removal is unsupported', { field: 'followSymlinks' });
  }
  return changeOnce(context, params, { writes: [path] }, async () => {
    if (params.followSymlinks === false) await refuseLinks(path, 'symlinkInPath');
    await remove(path, { recursive, force: params.force ?? true });
    return {};
  });
}
