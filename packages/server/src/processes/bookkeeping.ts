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
  const list = (leftovers?: Leftovers): ListResult | Parked<ListResult> =>
    bulk.make(() => ({ processes: summariesOf(processes, leftovers), epoch: server.epoch }));
  return params?.leftovers === true ? new Parked(leftoversOfAll(processes).then(list)) : list();
}

type Leftovers = ReadonlyMap<Process, { pid: number; argv: string[] }[]>;

/** Arguments of all processes in one answer, in characters: it has to fit a reply whatever was started. */
const MOST_ARGV_CHARS = 4 * 1024 * 1024;
const MOST_ARGV_CHARS_PER_PROCESS = 4096;

function summariesOf(processes: ProcessTable, leftovers?: Leftovers): ListResult['processes'] {
  const most = Math.min(MOST_ARGV_CHARS_PER_PROCESS, Math.floor(MOST_ARGV_CHARS / Math.max(1, processes.size)));
  return [...processes.values()].map((process) =>
    summaryOf(process, processes.startOf(process), { argvChars: most, leftovers: leftovers?.get(process) }),
  );
}

async function leftoversOfAll(processes: ProcessTable): Promise<Leftovers> {
  const found = new Map<Process, { pid: number; argv: string[] }[]>();
  for (const process of [...processes.values()]) {
    const leftovers = await leftoversOf(process, processes.startOf(process).mark);
    if (leftovers !== undefined) found.set(process, leftovers);
  }
  return found;
}

/** What an exited process left behind; undefined while it runs. */
async function leftoversOf(process: Process, mark: string): Promise<{ pid: number; argv: string[] }[] | undefined> {
  const { leader } = process;
  if (process.log.exited === undefined || leader === undefined) return undefined;
  const { members } = await findTree({ mark, groupLeader: leader });
  return members.map(({ pid, argv }) => ({ pid, argv: [...argv] }));
}
