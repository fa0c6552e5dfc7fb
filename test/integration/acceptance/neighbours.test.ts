/** Two servers on one machine, and a server inside a server. */
import { type Client, connect } from '@exec-server/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverProgram } from '../../support/links.js';
import { type Listening, startListening } from '../../support/serverProgram.js';
import { Tag } from '../../support/tagged.js';
import { until } from '../../support/until.js';
import { Watched } from '../../support/watched.js';

/** Three processes, and none that comes and goes: a shell that ignores SIGTERM, and two sleepers, one in a session of its own. */
const tree = "setsid -f sleep 600; trap '' TERM; sleep 600 & echo $!; wait; sleep 600";

let tag: Tag;
const servers: Listening[] = [];
const clients: Client[] = [];
beforeEach(() => {
  tag = new Tag();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const { child, ended } of servers.splice(0)) {
    child.kill('SIGTERM');
    await ended;
  }
  try {
    await until(() => tag.pids().length === 0, 'everything to end with its server');
  } finally {
    tag.killAll();
  }
});

async function client(url: string): Promise<Client> {
  const connected = await connect({ url, reconnect: false });
  clients.push(connected);
  return connected;
}

async function serve(env: Readonly<Record<string, string>> = {}): Promise<{ server: Listening; client: Client }> {
  const server = await startListening({ ...tag.env, ...env });
  servers.push(server);
  return { server, client: await client(server.url) };
}

/** A tree that runs whole, with what is alive of it. */
async function plant(client: Client, processId = 'same'): Promise<{ process: Watched; alive: () => number[] }> {
  const mine = new Tag('PLANTED');
  const process = new Watched(await client.start({ processId, argv: ['sh', '-c', tree], env: mine.env }));
  await process.numbers(1);
  const alive = (): number[] => mine.pids();
  await until(() => alive().length >= 3, 'the whole tree to run');
  return { process, alive };
}

describe('two servers on one machine', () => {
  it('keep the processes of one id apart, whichever is terminated with all its tree', async () => {
    const [one, other] = [await serve(), await serve()];
    const first = await plant(one.client);
    const second = await plant(other.client);
    const before = second.alive();
    const ended = await one.client.call('process/terminate', { processId: 'same', graceMs: 100, leftovers: 'kill' });
    expect(ended).toMatchObject({ running: true, left: [] });
    expect(first.alive()).toEqual([]);
    expect(second.alive()).toEqual(expect.arrayContaining(before));
    expect((await other.client.run(['echo', 'ok'])).text()).toBe('ok\n');
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('leave each other alone when one of them ends by %s', async (signal) => {
    const [one, other] = [await serve(), await serve()];
    const first = await plant(one.client);
    const second = await plant(other.client);
    const before = second.alive();
    one.server.child.kill(signal);
    await one.server.ended;
    await until(() => first.alive().length === 0, 'the processes of the dead server to end');
    expect(second.alive()).toEqual(expect.arrayContaining(before));
    expect((await other.client.run(['echo', 'ok'])).text()).toBe('ok\n');
    expect(await other.client.call('process/terminate', { processId: 'same', wait: true })).toMatchObject({
      running: true,
    });
  });

  it('leave each other alone when the session of one ends', async () => {
    const [one, other] = [await serve(), await serve()];
    const first = await plant(one.client);
    const second = await plant(other.client);
    const before = second.alive();
    await one.client.close();
    await until(() => first.alive().length === 0, 'the processes of the closed session to end');
    expect(second.alive()).toEqual(expect.arrayContaining(before));
  });
});

describe('a server inside a server', () => {
  /** The inner server runs as a process of the outer one. */
  async function nest(outer: Client): Promise<{ process: Watched; inner: Client }> {
    const argv = [process.execPath, serverProgram, '--listen', 'ws://127.0.0.1:0'];
    const nested = new Watched(await outer.start({ processId: 'inner', argv }));
    await nested.see(/ws:\/\/\S+\n/);
    return { process: nested, inner: await client(nested.text.trim()) };
  }

  it('keeps its processes when another process of the outer one is ended, and the other way round', async () => {
    const outer = await serve();
    const { inner } = await nest(outer.client);
    const within = await plant(inner);
    const beside = await plant(outer.client);
    const before = within.alive();
    await outer.client.call('process/terminate', { processId: 'same', leftovers: 'kill' });
    expect(beside.alive()).toEqual([]);
    expect(within.alive()).toEqual(expect.arrayContaining(before));

    const again = await plant(outer.client, 'again');
    const outside = again.alive();
    await inner.call('process/terminate', { processId: 'same', leftovers: 'kill' });
    expect(within.alive()).toEqual([]);
    expect(again.alive()).toEqual(expect.arrayContaining(outside));
    expect((await inner.run(['echo', 'ok'])).text()).toBe('ok\n');
  });

  it('takes only its own with it when it is killed', async () => {
    const outer = await serve();
    const { process: nested, inner } = await nest(outer.client);
    const within = await plant(inner);
    const beside = await plant(outer.client);
    const before = beside.alive();
    process.kill(nested.pid, 'SIGKILL');
    expect(await nested.handle.wait()).toMatchObject({ signal: 'SIGKILL', reason: 'exited' });
    await until(() => within.alive().length === 0, 'the processes of the inner server to end');
    expect(beside.alive()).toEqual(expect.arrayContaining(before));
    expect((await outer.client.run(['echo', 'ok'])).text()).toBe('ok\n');
  });

  it('ends with everything it started when the outer one ends its tree', async () => {
    const outer = await serve();
    const { inner } = await nest(outer.client);
    const within = await plant(inner);
    const ended = await outer.client.call('process/terminate', { processId: 'inner', leftovers: 'kill' });
    expect(ended).toMatchObject({ running: true, left: [] });
    expect(within.alive()).toEqual([]);
  });

  it('ends with everything it started when the outer one is killed', async () => {
    const outer = await serve();
    const { inner } = await nest(outer.client);
    const within = await plant(inner);
    outer.server.child.kill('SIGKILL');
    await outer.server.ended;
    await until(() => within.alive().length === 0, 'the processes of the inner server to end');
  });
});
