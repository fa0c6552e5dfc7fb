/** `process/write`: bytes for stdin, accepted once. */
import { Buffer } from 'node:buffer';
import { decodeBase64, limits, WireError, type WriteParams, type WriteResult } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Process } from './process.js';

export function writeProcess(context: HandlerContext, params: WriteParams): WriteResult | Parked<WriteResult> {
  const bytes = checkedBytes(params);
  const write = (): WriteResult | Parked<WriteResult> => {
    const process = context.session.processes.find(params.processId);
    return process === undefined ? { status: 'unknownProcess' } : writeTo(process, bytes, context, params);
  };
  const process = context.session.processes.find(params.processId);
  return process?.state === 'starting' ? new Parked(process.started.then(write)) : write();
}

function writeTo(
  process: Process,
  bytes: Uint8Array,
  context: HandlerContext,
  params: WriteParams,
): WriteResult | Parked<WriteResult> {
  // A write before it on the same connection may have been taken back; accepted now, this one would overtake its repeat.
  if (context.parking.ended) return { status: 'stdinClosed', acceptedOffset: process.stdinAcceptedBytes };
  const outcome = process.writeStdin({
    bytes,
    writeId: params.writeId ?? undefined,
    offset: params.offset ?? undefined,
    eof: params.eof ?? false,
  });
  return 'answer' in outcome ? context.parking.park(outcome.answer, () => outcome.cancel()) : outcome;
}

function checkedBytes(params: WriteParams): Uint8Array {
  const decoded = decodeBase64(params.chunk);
  if (!decoded.ok) throw new WireError('invalidParams', decoded.detail, { field: 'chunk' });
  const { writeId, offset } = params;
  if (writeId === '') throw new WireError('invalidParams', 'writeId must not be empty', { field: 'writeId' });
  if ((writeId ?? undefined) === undefined && (offset ?? undefined) === undefined) {
    const fault = writeId === null ? 'invalid type: null, expected a string' : 'missing field `writeId`';
    throw new WireError('invalidParams', fault, { field: 'writeId' });
  }
  if (typeof writeId === 'string' && Buffer.byteLength(writeId) > limits.MAX_WRITE_ID_BYTES) {
    throw new WireError('invalidParams', `writeId must not exceed ${limits.MAX_WRITE_ID_BYTES} bytes`, {
      field: 'writeId',
      limitBytes: limits.MAX_WRITE_ID_BYTES,
    });
  }
  return decoded.bytes;
}
