/** `process/terminate`: plain, it is one KILL to the group; else it waits, escalates, and says what is left. */
import { clampTimerMs, type TerminateParams, type TerminateResult } from '@exec-server/protocol';
import { holding } from '../clock.js';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Process } from './process.js';
import { terminateTree } from './terminate.js';

export function terminateProcess(
  context: HandlerContext,
  params: TerminateParams,
): TerminateResult | Parked<TerminateResult> {
  const process = context.session.processes.find(params.processId);
  if (process === undefined) return { running: false };
  const graceMs = clampTimerMs(params.graceMs ?? 0);
  const wholeTree = params.leftovers === 'kill';
  const asked = (params.graceMs ?? params.leftovers ?? undefined) !== undefined;
  const wait = params.wait ?? asked;
  // Plain: as the base protocol. A process that has exited is not touched: what it left behind may be wanted.
  if (!asked && !wait) return { running: process.terminate() };
  if (!asked) process.terminate();
  const running = asked ? process.ending('terminated') : process.log.exited === undefined;
  const ended = end(context, process, { running, graceMs, wholeTree });
  if (!wait) {
    ended.catch((error: unknown) => context.server.log('error', 'ending a process failed', { error }));
    return { running };
  }
  return context.parking.park(...withRelease(ended, { running }));
}

async function end(
  { server, session }: HandlerContext,
  process: Process,
  { running, graceMs, wholeTree }: { running: boolean; graceMs: number; wholeTree: boolean },
): Promise<TerminateResult> {
  // A start in progress sees that it is not wanted any more.
  if (process.state === 'starting') await process.started;
  if (process.state === 'starting') return { running, left: [], method: 'none', treeComplete: true };
  const { mark } = session.processes.startOf(process);
  const outcome = await terminateTree(process, running, { clock: holding(server.clock), mark, graceMs, wholeTree });
  const { exit, escalated, left, method, treeComplete } = outcome;
  return { running, escalated, left: [...left], method, treeComplete, ...(exit === undefined ? {} : { exit }) };
}

/** The answer may come early, when the connection ends; the work goes on. */
function withRelease<T>(work: Promise<T>, early: T): [answer: Promise<T>, release: () => void] {
  let release: () => void = () => {};
  const released = new Promise<T>((resolve) => {
    release = () => resolve(early);
  });
  return [Promise.race([work, released]), release];
}
