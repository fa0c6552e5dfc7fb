/** `fs/open`, `fs/readBlock`, `fs/writeBlock`, `fs/close`: open files and archives of a connection. */
import { decodeBase64, limits, type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { bytePath } from '../paths.js';
import { errnoError } from './errno.js';
import { checkHandleId, type OpenHandle } from './fileHandles.js';
import { openForWriting } from './openWrite.js';
import { openReadHandle } from './readHandle.js';
import { refuseSandbox } from './sandbox.js';

export function openFile(context: HandlerContext, params: ParamsOf<'fs/open'>): Parked<ResultOf<'fs/open'>> {
  refuseSandbox(params);
  const path = bytePath(params.path, 'path');
  const { files } = context;
  let result: ResultOf<'fs/open'> = { handleId: params.handleId };
  const open = async (): Promise<OpenHandle | undefined> => {
    const opened =
      params.mode === 'replace'
        ? await openForWriting(context, params)
        : await files.turn({ reads: [path] }, () => openReadHandle(path, params));
    result = opened.result;
    return opened.handle;
  };
  return new Parked(files.handles.open(params.handleId, open).then(() => result));
}

export function readBlock(
  { files }: HandlerContext,
  { handleId, offset, len }: ParamsOf<'fs/readBlock'>,
): Parked<ResultOf<'fs/readBlock'>> {
  checkHandleId(handleId);
  checkLength('read', len, 'len');
  return new Parked(
    files.handles.read(handleId, offset, len, (read) =>
      files.answers.read(async (small) => (small && len > limits.SMALL_FILE_BYTES ? undefined : read())),
    ),
  );
}

export function writeBlock(
  { files }: HandlerContext,
  { handleId, offset, chunk }: ParamsOf<'fs/writeBlock'>,
): Parked<ResultOf<'fs/writeBlock'>> {
  const decoded = decodeBase64(chunk);
  if (!decoded.ok) throw new WireError('invalidParams', decoded.detail, { field: 'chunk' });
  checkHandleId(handleId);
  const { bytes } = decoded;
  checkLength('write', bytes.length, 'chunk');
  const written = files.handles.write(handleId, offset, bytes, (write) =>
    files.answers.onDisk(async () => {
      if (!Number.isSafeInteger(offset + bytes.length)) throw errnoError('EFBIG');
      return write();
    }),
  );
  return new Parked(written.then(() => ({})));
}

export function closeHandle({ files }: HandlerContext, params: ParamsOf<'fs/close'>): Parked<ResultOf<'fs/close'>> {
  checkHandleId(params.handleId);
  return new Parked(files.handles.close(params.handleId, params));
}

function checkLength(what: 'read' | 'write', length: number, field: string): void {
  const limitBytes = limits.MAX_FILE_BLOCK_BYTES;
  if (length >= 1 && length <= limitBytes) return;
  throw new WireError('invalidArgument', `file ${what} block length must be between 1 and ${limitBytes}`, {
    field,
    limitBytes,
  });
}
