/** `process/resize`, `process/list`, `process/release`. */
import {
  type ListParams,
  type ListResult,
  type ReleaseParams,
  type ResizeParams,
  WireError,
} from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Process } from './process.js';
import type { ProcessTable } from './processTable.js';
import { summaryOf } from './summary.js';
import { findTree } from '../host/tree/findTree.js';

type Nothing = Record<string, never>;

export function resizeProcess({ session }: HandlerContext, params: ResizeParams): Nothing | Parked<Nothing> {
  const process = session.processes.get(params.processId);
  const resize = (): Nothing => {
    // A start that failed meanwhile.
    if (session.processes.get(params.processId).terminal === undefined) {
      throw new WireError('notTerminal', `process ${params.processId} does not run on a terminal`);
    }
    process.terminal?.resize({ cols: params.cols, rows: params.rows });
    return {};
  };
  return process.state === 'starting' ? new Parked(process.started.then(resize)) : resize();
}

export function releaseProcess({ session }: HandlerContext, params: ReleaseParams): Nothing {
  session.processes.release(params.processId);
  return {};
}

export function listProcesses(
  { server, session, bulk }: HandlerContext,
  params: ListParams,
): ListResult | Parked<ListResult> {
  const { processes } = session;
  const { epoch } = server;
  return bulk.make(() => {
    const all = [...processes.values()];
    if (params?.leftovers === true) return listWithLeftovers(all, processes, epoch);
    return { processes: all.map((process) => summaryOf(process, processes.startOf(process), undefined)), epoch };
  });
}

async function listWithLeftovers(all: readonly Process[], processes: ProcessTable, epoch: string): Promise<ListResult> {
  const summaries: ListResult['processes'] = [];
  for (const process of all) {
    const start = processes.startOf(process);
    summaries.push(summaryOf(process, start, await leftoversOf(process, start.mark)));
  }
  return { processes: summaries, epoch };
}

/** What an exited process left behind; undefined while it runs. */
async function leftoversOf(process: Process, mark: string): Promise<{ pid: number; argv: string[] }[] | undefined> {
  const { leader } = process;
  if (process.log.exited === undefined || leader === undefined) return undefined;
  const { members } = await findTree({ mark, groupLeader: leader });
  return members.map(({ pid, argv }) => ({ pid, argv: [...argv] }));
}
