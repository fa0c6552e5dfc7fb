/** What is wrong with the params of a start before the host is asked. Throws WireError. */
import { Buffer } from 'node:buffer';
import { limits, type StartParams, WireError } from '@exec-server/protocol';

/** Requests to be confined that this server cannot honour; running unconfined instead would betray the caller. */
const CONFINEMENTS = ['managedNetwork', 'networkProxy', 'shellSnapshot'] as const;

export function checkStartParams(params: StartParams): void {
  refuseConfinement(params);
  if (Buffer.byteLength(params.processId) > limits.MAX_PROCESS_ID_BYTES) {
    throw new WireError('invalidParams', `processId must not exceed ${limits.MAX_PROCESS_ID_BYTES} bytes`, {
      field: 'processId',
      limitBytes: limits.MAX_PROCESS_ID_BYTES,
    });
  }
  if ((params.size ?? undefined) !== undefined && !params.tty) {
    throw new WireError('invalidParams', 'size is for a process on a terminal; tty is false', { field: 'size' });
  }
  checkThreadId(params.metadata?.threadId ?? undefined);
}

/** A UUID, as the base protocol has it, in its words. */
function checkThreadId(threadId: string | undefined): void {
  if (threadId === undefined) return;
  const digits = threadId.replace(/^urn:uuid:/, '');
  const strange = /[^0-9a-fA-F-]/u.exec(digits);
  if (strange === null && digits.replaceAll('-', '').length === 32) return;
  const message =
    strange === null
      ? `invalid length: expected length 32 for simple format, found ${digits.replaceAll('-', '').length}`
      : `invalid character: expected an optional prefix of \`urn:uuid:\` followed by [0-9a-fA-F-], found \`${strange[0]}\` at ${strange.index + 1}`;
  throw new WireError('invalidParams', message, { field: 'metadata.threadId' });
}

function refuseConfinement(params: StartParams): void {
  const refuse = (field: string): never => {
    throw new WireError(
      'sandboxUnavailable',
      `this server has no sandbox: \`${field}\` cannot be honoured and nothing was run`,
      { field },
    );
  };
  const sandbox = params.sandbox ?? undefined;
  if (sandbox !== undefined && sandbox.permissions.type !== 'disabled') refuse('sandbox');
  if (params.enforceManagedNetwork === true) refuse('enforceManagedNetwork');
  for (const field of CONFINEMENTS) {
    if ((params[field] ?? undefined) !== undefined) refuse(field);
  }
}
