/** Has one sequence with one server, in a folder of its own, over a connection of its own. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ConnectionLost, type Members, RawError, RawPeer } from '../../support/rawPeer.js';
import { ProcessLogs } from './processLog.js';
import type { Conversation, HostChange, Seen, Step } from './step.js';
import { readTree } from './tree.js';

/** After these the disk is looked at. */
const changing = new Set(['fs/writeFile', 'fs/createDirectory', 'fs/remove', 'fs/copy', 'fs/open', 'fs/writeBlock']);

const STEP_TIMEOUT_MS = 10_000;

export interface Place {
  readonly url: string;
  /** Where folders of sequences are made; its length is the same for both servers. */
  readonly folder: string;
  /** An http server both can reach. */
  readonly web: string;
}

export async function converse({ url, folder, web }: Place, steps: readonly Step[]): Promise<Conversation> {
  const own = await mkdtemp(join(folder, 's'));
  const logs = new ProcessLogs();
  const peer = await RawPeer.dial(url, {
    notification: (method, params) => logs.notified(method, params),
  });
  try {
    await peer.initialize({});
    const conversation = new OneConversation(peer, logs, own);
    const seen: Seen[] = [];
    for (const step of steps) {
      const now = await inTime(conversation.take(filled(step, own, web)));
      if ('silence' in now) {
        seen.push(now);
        break;
      }
      seen.push(step.do === 'call' && changing.has(step.method) ? { ...now, left: await readTree(own) } : now);
    }
    return { folder: own, seen };
  } finally {
    await peer.cut();
    await rm(own, { recursive: true, force: true });
  }
}

class OneConversation {
  readonly #peer: RawPeer;
  readonly #logs: ProcessLogs;
  readonly #folder: string;
  readonly #started = new Set<string>();

  constructor(peer: RawPeer, logs: ProcessLogs, folder: string) {
    this.#peer = peer;
    this.#logs = logs;
    this.#folder = folder;
  }

  async take(step: Step): Promise<Seen> {
    switch (step.do) {
      case 'call':
        return this.#call(step.method, step.params);
      case 'host':
        return { result: await applied(this.#folder, step.change) };
      case 'awaitClosed':
        return { result: this.#started.has(step.processId) ? await this.#logs.closed(step.processId) : 'not started' };
      case 'awaitOutput': {
        const { processId, bytes } = step;
        return { result: this.#started.has(processId) ? await this.#logs.output(processId, bytes) : 'not started' };
      }
      default:
        return step satisfies never;
    }
  }

  async #call(method: string, params: Members): Promise<Seen> {
    try {
      const result = await this.#peer.request(method, params);
      if (method === 'process/start') this.#started.add(String(result['processId']));
      return { result };
    } catch (error) {
      if (error instanceof RawError) return { error: { code: error.code, message: error.message } };
      if (error instanceof ConnectionLost) return { silence: error.message };
      throw error;
    }
  }
}

async function inTime(seen: Promise<Seen>): Promise<Seen> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Seen>((resolve) => {
    timer = setTimeout(() => resolve({ silence: `nothing in ${STEP_TIMEOUT_MS} ms` }), STEP_TIMEOUT_MS);
  });
  const first = await Promise.race([seen, late]);
  clearTimeout(timer);
  return first;
}

function filled(step: Step, folder: string, web: string): Step {
  const text = JSON.stringify(step)
    .replaceAll('$URI', pathToFileURL(folder).href)
    .replaceAll('$PATH', folder)
    .replaceAll('$WEB', web);
  // The same shape with other texts: no placeholder can stand for anything that JSON would escape.
  return JSON.parse(text) as Step;
}

/** What became of a change on the host: an errno name where it could not be made. */
async function applied(folder: string, change: HostChange): Promise<string> {
  try {
    await apply(join(folder, change.path), change);
    return 'made';
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

async function apply(path: string, change: HostChange): Promise<void> {
  switch (change.kind) {
    case 'symlink':
      return symlink(change.target, path);
    case 'chmod':
      return chmod(path, change.mode);
    case 'makeFolder':
      return mkdir(path);
    case 'writeFile':
      return writeFile(path, change.text);
    case 'makeFifo':
      await promisify(execFile)('mkfifo', [path]);
  }
}
