/** `fs/copy` and `fs/move`. */
import { type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath } from '../paths.js';
import { copyPath as copy } from './copyTree.js';
import { movePath as move } from './movePath.js';
import { changeOnce } from './operations.js';
import { refuseSandbox } from './sandbox.js';

export function copyPath(context: HandlerContext, params: ParamsOf<'fs/copy'>): Parked<ResultOf<'fs/copy'>> {
  refuseSandbox(params);
  const source = bytePath(params.sourcePath, 'sourcePath');
  const destination = bytePath(params.destinationPath, 'destinationPath');
  return changeOnce(context, params, { reads: [source], writes: [destination] }, async () => {
    const { skipped } = await copy(source, destination, {
      temps: context.server.tempFiles,
      recursive: params.recursive,
      overwrite: params.overwrite ?? true,
      followSymlinks: params.followSymlinks ?? false,
      alike: false,
      check: () => refuseWhenOver(context),
    });
    return skipped === 0 ? {} : { skipped };
  });
}

export function movePath(context: HandlerContext, params: ParamsOf<'fs/move'>): Parked<ResultOf<'fs/move'>> {
  refuseSandbox(params);
  const source = bytePath(params.sourcePath, 'sourcePath');
  const destination = bytePath(params.destinationPath, 'destinationPath');
  return changeOnce(context, params, { writes: [source, destination] }, async () => {
    const copied = await move(source, destination, {
      temps: context.server.tempFiles,
      overwrite: params.overwrite ?? true,
      check: () => refuseWhenOver(context),
    });
    return copied ? { copied } : {};
  });
}

/** A lost connection does not end a copy, the end of its session does. */
function refuseWhenOver({ session }: HandlerContext): void {
  if (session.ended) throw new WireError('sessionEnded', 'the session has ended, and the copy with it');
}
