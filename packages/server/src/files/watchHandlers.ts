/** `fs/watchMissing`, `fs/watch` and `fs/unwatch`. What a watch tells comes behind the answer that says it stands. */
import type { ParamsOf, ResultOf } from '@exec-server/protocol';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath } from '../paths.js';
import { refuseSandbox } from './sandbox.js';

export function watchMissing(
  { files, afterReply }: HandlerContext,
  { watchId, missing }: ParamsOf<'fs/watchMissing'>,
): Parked<ResultOf<'fs/watchMissing'>> {
  const paths = missing.map((path) => bytePath(path, 'missing'));
  return files.run({ reads: paths }, async () => {
    const start = await files.watches.watchMissing(watchId, paths);
    const result = { watching: start !== undefined };
    if (start !== undefined) afterReply(result, start);
    return result;
  });
}

export function watchPath(
  { files, server, afterReply }: HandlerContext,
  params: ParamsOf<'fs/watch'>,
): Parked<ResultOf<'fs/watch'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const fault = (error: unknown): void =>
    server.log('error', 'a watch failed by a fault of the server', { method: 'fs/watch', error });
  return files.run({ reads: [path] }, async () => {
    const start = await files.watches.watch(params, path, { clock: server.clock, fault });
    const result = { watchId: params.watchId };
    afterReply(result, start);
    return result;
  });
}

export function unwatchPath({ files }: HandlerContext, { watchId }: ParamsOf<'fs/unwatch'>): ResultOf<'fs/unwatch'> {
  files.watches.unwatch(watchId);
  return {};
}
