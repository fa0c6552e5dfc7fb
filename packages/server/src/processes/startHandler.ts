/** `process/start`: checks, reserves the id in the same tick, forks, and leaves nothing when that fails. */
import { Buffer } from 'node:buffer';
import { limits, processId, type StartParams, type StartResult, WireError } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { nativePath } from '../paths.js';
import type { SpawnRequest } from './child.js';
import { buildChildEnvironment } from './environment.js';
import type { Process } from './process.js';

/** Requests to be confined that this server cannot honour; running unconfined instead would betray the caller. */
const CONFINEMENTS = ['managedNetwork', 'networkProxy', 'shellSnapshot'] as const;

/** The id is taken before this returns; the fork is waited for in no place of the queue. */
export function startProcess(context: HandlerContext, params: StartParams): Parked<StartResult> {
  const { server, session } = context;
  refuseConfinement(params);
  if (params.tty) {
    throw new WireError(
      'terminalUnavailable',
      'this server cannot start processes on a terminal; start it with tty: false',
      {
        field: 'tty',
      },
    );
  }
  if (Buffer.byteLength(params.processId) > limits.MAX_PROCESS_ID_BYTES) {
    throw new WireError('invalidParams', `processId must not exceed ${limits.MAX_PROCESS_ID_BYTES} bytes`, {
      field: 'processId',
      limitBytes: limits.MAX_PROCESS_ID_BYTES,
    });
  }
  checkThreadId(params.metadata?.threadId ?? undefined);
  const request: SpawnRequest = {
    argv: params.argv,
    arg0: params.arg0 ?? undefined,
    cwd: nativePath(params.cwd, 'cwd'),
    env: buildChildEnvironment({
      serverEnv: server.serverEnv,
      policy: params.envPolicy ?? undefined,
      env: params.env,
      metadata: params.metadata ?? undefined,
    }),
    stdin: params.pipeStdin === true ? 'pipe' : 'none',
  };
  const process = session.processes.reserve(processId(params.processId));
  return new Parked(forkInto(process, request, context));
}

async function forkInto(
  process: Process,
  request: SpawnRequest,
  { server, session }: HandlerContext,
): Promise<StartResult> {
  try {
    const child = await server.starts.add(() =>
      server.platform.spawn(request, () => process.terminated || session.ended),
    );
    process.begin(child);
    session.began(process);
    return { processId: process.id, sandboxType: 'none', pid: child.pid };
  } catch (error) {
    session.processes.free(process);
    process.fail();
    if (error instanceof WireError && error.reason === 'startCancelled') {
      throw new WireError('startCancelled', `process ${process.id} start was cancelled`);
    }
    throw error;
  }
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
