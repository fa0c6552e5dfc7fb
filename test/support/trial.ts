/** One server and one client under acceptance: starts are watched, and whatever they leave behind is found. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type Client, connect, type StartOptions } from '@exec-server/client';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { expect } from 'vitest';
import { type ClientOptions, childrenOf, stdioCommand } from './links.js';
import { Tag } from './tagged.js';
import { until } from './until.js';
import { Watched } from './watched.js';

export const wires = ['stdio', 'websocket'] as const;
export type Wire = (typeof wires)[number];

export interface TrialOptions {
  /** Of the server, where it is one in this process. */
  readonly server?: ExecServerOptions;
  readonly client?: ClientOptions;
}

/** What is known of a process that should have ended. */
function describeProcess(pid: number): string {
  const read = (name: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, 'utf8').replaceAll('\0', ' ').slice(0, 300);
    } catch {
      // It has ended meanwhile.
      return 'gone';
    }
  };
  return `${read('cmdline')} (${read('stat')})`;
}

export class Trial {
  readonly tag: Tag;
  readonly client: Client;
  /** Undefined over stdio, where the server is a program of its own. */
  readonly server: ExecServer | undefined;
  /** Undefined over stdio. */
  readonly url: string | undefined;
  readonly serverPid: number;
  readonly #before: Before;
  #descriptors = 0;
  #children: readonly number[] = [];

  private constructor(tag: Tag, before: Before, client: Client, served?: { server: ExecServer; url: string }) {
    this.tag = tag;
    this.#before = before;
    this.client = client;
    this.server = served?.server;
    this.url = served?.url;
    this.serverPid = served === undefined ? newChild(before) : process.pid;
  }

  static async open(wire: Wire, options: TrialOptions = {}): Promise<Trial> {
    const tag = new Tag();
    const before = { children: childrenOf(process.pid), timers: timers() };
    const trial = await Trial.#connect(wire, options, tag, before);
    await trial.#warmUp();
    return trial;
  }

  static async #connect(wire: Wire, { server, client }: TrialOptions, tag: Tag, before: Before): Promise<Trial> {
    if (wire === 'stdio') {
      return new Trial(tag, before, await connect({ ...client, command: [...stdioCommand], env: tag.env }));
    }
    const served = createExecServer({ env: { ...process.env, ...tag.env }, ...server });
    const { url } = await served.listen();
    return new Trial(tag, before, await connect({ ...client, url }), { server: served, url });
  }

  async start(argv: readonly string[], options: Omit<StartOptions, 'argv'> = {}): Promise<Watched> {
    return new Watched(await this.client.start({ ...options, argv }));
  }

  sh(script: string, options: Omit<StartOptions, 'argv'> = {}): Promise<Watched> {
    return this.start(['sh', '-c', script], options);
  }

  /** What the processes of this trial have left alive. */
  relatives(): number[] {
    return this.tag.pids().filter((pid) => pid !== this.serverPid);
  }

  /** Waits until so many of them show their tag: within its exec a process shows none. Resolves with their pids. */
  async family(count: number): Promise<number[]> {
    await until(() => this.relatives().length === count, `${count} processes of the test to be alive`);
    return this.relatives();
  }

  /** Descriptors of the server without the pipes it keeps ready, of which it has both ends. */
  descriptors(): number {
    const ends = new Map<string, number>();
    let others = 0;
    for (const target of descriptorTargets(this.serverPid)) {
      if (target.startsWith('pipe:')) ends.set(target, (ends.get(target) ?? 0) + 1);
      else others += 1;
    }
    return others + [...ends.values()].filter((count) => count === 1).length;
  }

  /** All descriptors of the server. */
  allDescriptors(): number {
    return descriptorTargets(this.serverPid).length;
  }

  /** The server is alive and works, and of what was started nothing is left: process, zombie, descriptor, pending call. */
  async expectClean(): Promise<void> {
    try {
      expect((await this.client.run(['echo', 'ok'])).text()).toBe('ok\n');
      await until(() => this.relatives().length === 0, 'the processes of the test to end').catch((error: unknown) => {
        throw new Error(`${String(error)}: ${this.relatives().map(describeProcess).join('; ')}`);
      });
      await until(() => this.#newChildren().length === 0, 'the children of the server to be reaped');
      await until(() => this.descriptors() <= this.#descriptors, `descriptors to fall to ${this.#descriptors}`);
      if (this.server !== undefined) {
        const files = { openFiles: 0, stages: 0, watches: 0 };
        const idle = { runningProcesses: 0, stdinQueuedBytes: 0, pendingRequests: 0, ...files };
        const { server } = this;
        const isIdle = (): boolean =>
          Object.entries(idle).every(([gauge, value]) => Reflect.get(server.gauges(), gauge) === value);
        // What a caller gave up is closed behind its back.
        await until(isIdle, 'the last calls to be answered').catch(() => expect(server.gauges()).toMatchObject(idle));
      }
    } finally {
      for (const pid of this.relatives()) kill(pid);
    }
  }

  /** Ends client and server; nothing of either is left. */
  async close(): Promise<void> {
    try {
      await this.client.close();
      await this.server?.close();
      if (this.server !== undefined) {
        const files = { openFiles: 0, stages: 0, watches: 0 };
        const nothing = { connections: 0, sessions: 0, processes: 0, pendingRequests: 0, ...files };
        expect(this.server.gauges()).toMatchObject(nothing);
      }
      await until(() => this.tag.pids().length === 0, 'everything the server started to end');
      const { children } = this.#before;
      await until(() => childrenOf(process.pid).every((pid) => children.includes(pid)), 'the children to be reaped');
      await until(() => timers() <= this.#before.timers, 'the timers to be gone');
    } finally {
      this.tag.killAll();
    }
  }

  /** The guard and the machinery of pipes and terminals stand only after a first start. */
  async #warmUp(): Promise<void> {
    await this.client.run(['true']);
    await this.client.run(['true'], { tty: true });
    await until(() => this.relatives().length === 0, 'the first processes to end');
    const shells = (): number[] => childrenOf(this.serverPid);
    await until(() => shells().every((pid) => isGuard(pid) || this.#before.children.includes(pid)), 'the guard alone');
    this.#children = shells();
    this.#descriptors = this.descriptors();
  }

  #newChildren(): number[] {
    return childrenOf(this.serverPid).filter((pid) => !this.#children.includes(pid));
  }
}

/** Descriptors may differ by so many from what they were. */
const TOLERANCE = 5;
/** Longer than a server without starts keeps many pipes ready. */
const REST_MS = 20_000;

/** All descriptors of the server are back to what they were, the pipes it keeps ready included. */
export async function expectDescriptors(trial: Trial, before: number): Promise<void> {
  const isBack = (): boolean => trial.allDescriptors() <= before + TOLERANCE;
  await until(isBack, `descriptors to return to ${before}`, REST_MS);
}

interface Before {
  readonly children: readonly number[];
  readonly timers: number;
}

function newChild({ children }: Before): number {
  const [pid, ...others] = childrenOf(process.pid).filter((candidate) => !children.includes(candidate));
  if (pid === undefined || others.length > 0) throw new Error(`one new child was expected, not ${others.length + 1}`);
  return pid;
}

function isGuard(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('exec-server-guard');
  } catch {
    // It ended since the listing.
    return false;
  }
}

function descriptorTargets(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)];
    } catch {
      // The one this listing was read by.
      return [];
    }
  });
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}
