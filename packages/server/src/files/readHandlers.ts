/** The handlers of the methods that read: params checked, and each answer made in its turn. */
import type { ParamsOf, ResultOf } from '@exec-server/protocol';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath } from '../paths.js';
import { listDirectory, pageOf } from './directory.js';
import { canonicalOf, metadataOf } from './metadata.js';
import { readAccess } from './openRead.js';
import { rangeOf, readFileAt } from './readFile.js';
import { refuseSandbox } from './sandbox.js';
import { checkWalkOptions, walkTree } from './walk.js';

export function readFile({ files }: HandlerContext, params: ParamsOf<'fs/readFile'>): Parked<ResultOf<'fs/readFile'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const range = rangeOf(params);
  const access = readAccess(params);
  return files.read({ reads: [path] }, (small) => readFileAt(path, access, range, small));
}

export function getMetadata(
  { files }: HandlerContext,
  params: ParamsOf<'fs/getMetadata'>,
): Parked<ResultOf<'fs/getMetadata'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  return files.read({ reads: [path] }, () => metadataOf(path, params));
}

export function canonicalize(
  { files }: HandlerContext,
  params: ParamsOf<'fs/canonicalize'>,
): Parked<ResultOf<'fs/canonicalize'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  return files.read({ reads: [path] }, () => canonicalOf(path));
}

export function readDirectory(
  { files }: HandlerContext,
  params: ParamsOf<'fs/readDirectory'>,
): Parked<ResultOf<'fs/readDirectory'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const page = pageOf(params);
  const detail = params.detail ?? false;
  return files.collect({ reads: [path] }, (small) =>
    listDirectory(path, { detail, page, small, checkpoint: () => files.answers.checkpoint() }),
  );
}

export function walk({ files }: HandlerContext, params: ParamsOf<'fs/walk'>): Parked<ResultOf<'fs/walk'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  checkWalkOptions(params.options);
  return files.collect({ reads: [path] }, (small) =>
    walkTree(path, params.options, { small, checkpoint: () => files.answers.checkpoint() }),
  );
}
