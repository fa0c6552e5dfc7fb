/** Kills a server the hard way and looks whether its process is gone: only the guard can have done that. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '@exec-server/client';
import { ownServerCommand } from '../ownServer.js';

const WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 20;

/** Uses a server of its own; the one that is given is left alone. */
export async function guardCheck(): Promise<string | undefined> {
  const client = await connect({ command: ownServerCommand(), clientName: 'exec-server doctor' });
  try {
    const serverPid = Number((await client.run(['/bin/sh', '-c', 'echo "$PPID"'])).text());
    if (statOf(serverPid)?.parent !== process.pid) return undefined;
    const { pid } = await client.start({ argv: ['sleep', '60'] });
    if (pid === undefined) return undefined;
    process.kill(serverPid, 'SIGKILL');
    if (await isGone(pid)) return 'ends every process when the server is killed';
    process.kill(pid, 'SIGKILL');
    return undefined;
  } finally {
    await client.close();
  }
}

async function isGone(pid: number): Promise<boolean> {
  const deadline = performance.now() + WITHIN_MS;
  for (;;) {
    const stat = statOf(pid);
    // A zombie has died; who reaps it is another question.
    if (stat === undefined || stat.state === 'Z') return true;
    if (performance.now() > deadline) return false;
    await delay(LOOK_EVERY_MS);
  }
}

/** Undefined when there is no such process, and where there is no /proc. */
function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // No such process.
    return undefined;
  }
  const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state, parent: Number(parent) };
}
