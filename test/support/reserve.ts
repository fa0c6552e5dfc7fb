/** Takes an id in a process table, as a start does. */
import { processId } from '@exec-server/protocol';
import type { Process } from '../../packages/server/src/processes/process.js';
import type { ProcessTable } from '../../packages/server/src/processes/processTable.js';

export function reserve(processes: ProcessTable, id: string): Process {
  const start = { argv: ['program'], tty: false, digest: () => 'digest', mark: 'life-1' };
  return processes.reserve(processId(id), start, {});
}
