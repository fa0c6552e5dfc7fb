/** `process/start`: checks, reserves the id in the same tick, forks, and leaves nothing when that fails. */
import { createHash } from 'node:crypto';
import { clampTimerMs, processId, type StartParams, type StartResult, WireError } from '@exec-server/protocol';
import { holding } from '../clock.js';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { nativePath } from '../paths.js';
import type { SpawnRequest } from '../host/child.js';
import { buildChildEnvironment } from './environment.js';
import type { Process } from './process.js';
import type { StartRecord } from './startRecord.js';
import { checkStartParams } from './startParams.js';
import { exitSummary } from './summary.js';
import { terminateTree } from './terminate.js';
import { addMark, MARK_VARIABLE } from '../host/tree/mark.js';

/** The id is taken before this returns; the fork is waited for in no place of the queue. */
export function startProcess(context: HandlerContext, params: StartParams): StartResult | Parked<StartResult> {
  checkStartParams(params);
  const { server, session } = context;
  const digest = (): string => digestOf(params);
  const adopted = params.ifExists === 'adopt' ? adopt(context, params.processId, digest()) : undefined;
  if (adopted !== undefined) return adopted;
  const mark = session.marks.next();
  const request: SpawnRequest = {
    argv: params.argv,
    arg0: params.arg0 ?? undefined,
    cwd: nativePath(params.cwd, 'cwd'),
    env: {
      ...buildChildEnvironment({
        serverEnv: server.serverEnv,
        policy: params.envPolicy ?? undefined,
        env: params.env,
        metadata: params.metadata ?? undefined,
      }),
      // The server's own variable names the servers it runs under; a request's would name another process's tree.
      [MARK_VARIABLE]: addMark(server.outerMarks, mark),
    },
    stdin: params.pipeStdin === true ? 'pipe' : 'none',
    terminal: params.tty ? (params.size ?? { cols: 80, rows: 24 }) : undefined,
  };
  const start: StartRecord = { argv: params.argv, tty: params.tty, digest, mark };
  const lingerMs = (params.lingerMs ?? undefined) === undefined ? undefined : clampTimerMs(params.lingerMs ?? 0);
  const detached = params.detached ?? undefined;
  const process = session.processes.reserve(processId(params.processId), start, { lingerMs, detached });
  return new Parked(forkInto(process, request, params.timeoutMs ?? undefined, context));
}

async function forkInto(
  process: Process,
  request: SpawnRequest,
  timeoutMs: number | undefined,
  { server, session }: HandlerContext,
): Promise<StartResult> {
  try {
    const child = await server.starts.add(() =>
      server.platform.spawn(request, () => process.terminated || session.ended),
    );
    process.begin(child);
    server.reaper.watch(process);
    if (timeoutMs !== undefined) killAfter(process, timeoutMs, server, session.processes.startOf(process).mark);
    session.began(process);
    server.log('debug', 'process started', { processId: process.id, pid: child.pid });
    return { processId: process.id, sandboxType: 'none', pid: child.pid };
  } catch (error) {
    session.processes.free(process);
    process.fail();
    if (error instanceof WireError)
      server.log('debug', 'process not started', { processId: process.id, reason: error.reason });
    if (error instanceof WireError && error.reason === 'startCancelled') {
      throw new WireError('startCancelled', `process ${process.id} start was cancelled`);
    }
    throw error;
  }
}

/** The group at once, then those of the tree that left it. */
function killAfter(process: Process, timeoutMs: number, server: HandlerContext['server'], mark: string): void {
  const { clock } = server;
  const over = (): void => {
    process.kill('timedOut');
    terminateTree(process, false, { clock: holding(clock), mark, graceMs: 0, wholeTree: true }).catch(
      (error: unknown) => server.log('error', 'ending a tree whose time was up failed', { error }),
    );
  };
  const cancel = clock.after(timeoutMs, over);
  const stop = process.watch(() => {
    if (process.log.exited === undefined) return;
    stop();
    cancel();
  });
}

/** The process that has the id, if it was started by the same params; undefined when the id is free. */
function adopt(context: HandlerContext, id: string, digest: string): StartResult | Parked<StartResult> | undefined {
  const { processes } = context.session;
  const differs = (): WireError =>
    new WireError('startDiffers', `process ${id} already exists and was started with other params`, {
      field: 'processId',
    });
  const tombstone = processes.tombstone(id);
  if (tombstone !== undefined) {
    if (tombstone.digest !== digest) throw differs();
    const { exit } = tombstone;
    return { processId: id, sandboxType: 'none', existing: true, ...(exit === undefined ? {} : { exit }) };
  }
  const process = processes.find(id);
  if (process === undefined) return undefined;
  if (processes.startOf(process).digest() !== digest) throw differs();
  const answer = (): StartResult => {
    // The start this one joined may have failed meanwhile: that is the answer to both.
    if (processes.find(id) !== process) throw new WireError('startCancelled', `the start of process ${id} failed`);
    const { pid } = process;
    const exit = exitSummary(process);
    return {
      processId: id,
      sandboxType: 'none',
      existing: true,
      ...(pid === undefined ? {} : { pid }),
      ...(exit === undefined ? {} : { exit }),
    };
  };
  return process.state === 'starting' ? new Parked(process.started.then(answer)) : answer();
}

/** Equal for starts that ask for the same; the order of members does not matter. */
function digestOf({ ifExists: _ifExists, ...params }: StartParams): string {
  const sorted = (_key: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return createHash('sha256').update(JSON.stringify(params, sorted)).digest('base64');
}
