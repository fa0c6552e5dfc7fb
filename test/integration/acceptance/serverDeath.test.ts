/** However the server ends, nothing it started lives on; what can be found is found, in a group or out of it. */
import { type Client, connect } from '@exec-server/client';
import { byteTransport } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '../../support/links.js';
import { type ServerProgram, startListening, startServer } from '../../support/serverProgram.js';
import { Tag } from '../../support/tagged.js';
import { wires } from '../../support/trial.js';
import { until } from '../../support/until.js';
import { Watched } from '../../support/watched.js';

const trees = {
  plain: 'sleep 600 & sleep 600 & echo ready; wait',
  deaf: "trap '' TERM HUP INT; sh -c 'sleep 600' & echo ready; while :; do sleep 0.2; done",
  escaped: 'setsid sh -c "trap \'\' TERM HUP INT; sleep 600" & setsid -f sleep 600; echo ready; wait',
  stopped: 'sleep 600 & kill -STOP $!; echo ready; wait',
  orphaned: "(setsid sh -c 'sleep 600 & exit' &); sleep 0.05; echo ready; exit 0",
} as const;
/** Processes a tree has at least. */
const TREE_MEMBERS = { plain: 3, deaf: 2, escaped: 4, stopped: 2, orphaned: 1 } as const;
const kinds = Object.keys(trees) as (keyof typeof trees)[];

describe.each(wires)('the end of a server over %s', (wire) => {
  let tag: Tag;
  let server: ServerProgram;
  let client: Client;
  beforeEach(async () => {
    tag = new Tag();
    if (wire === 'stdio') {
      server = startServer(tag.env, 'stdio');
      const { stdout, stdin } = server.child;
      if (stdout === null || stdin === null) throw new Error('the server has no streams');
      client = await connect({ transport: byteTransport(stdout, stdin, { label: 'program' }), reconnect: false });
    } else {
      const listening = await startListening(tag.env);
      server = listening;
      client = await connect({ url: listening.url, reconnect: false });
    }
  });
  afterEach(async () => {
    server.child.kill('SIGKILL');
    await server.ended;
    await client.close();
    tag.killAll();
  });

  const left = (): number[] => tag.pids().filter((pid) => pid !== server.pid);

  /** Resolves when they all run. */
  async function plant(count: number): Promise<void> {
    const members = await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const kind = kinds[index % kinds.length] ?? 'plain';
        const tree = new Watched(await client.start({ argv: ['sh', '-c', trees[kind]] }));
        await tree.see('ready');
        return TREE_MEMBERS[kind];
      }),
    );
    const least = members.reduce<number>((sum, count) => sum + count, 0);
    await until(() => left().length >= least, `${least} processes to run`);
  }

  it('leaves nothing of twenty trees when it is killed by SIGKILL', async () => {
    await plant(20);
    server.child.kill('SIGKILL');
    expect(await server.ended).toBe('SIGKILL');
    await until(() => left().length === 0, 'the trees to be ended by the guard');
  });

  it('leaves nothing when it is killed right behind the answer to its first start', async () => {
    await client.start({ argv: ['sh', '-c', 'setsid -f sleep 600; exec sleep 600'] });
    server.child.kill('SIGKILL');
    await server.ended;
    await until(() => left().length === 0, 'the first process to be ended by the guard');
  });

  it('leaves nothing when it is killed in the middle of twenty starts', async () => {
    const starts = Array.from({ length: 20 }, () => client.start({ argv: ['sleep', '600'] }));
    for (const start of starts) start.catch(() => undefined);
    await starts[7];
    server.child.kill('SIGKILL');
    await server.ended;
    await Promise.allSettled(starts);
    await until(() => left().length === 0, 'the processes to be ended by the guard');
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'leaves nothing of five trees when it is stopped by %s',
    async (signal) => {
      await plant(5);
      server.child.kill(signal);
      expect(await server.ended).toBe(0);
      // It ends only after everything else.
      expect(left()).toEqual([]);
    },
  );

  it('leaves nothing when the client closes its session, and works on or ends as its wire has it', async () => {
    await plant(5);
    await client.close();
    if (wire === 'stdio') expect(await server.ended).toBe(0);
    await until(() => left().length === 0, 'the trees to end');
    expect(isAlive(server.pid)).toBe(wire === 'websocket');
  });

  it.runIf(wire === 'stdio')('leaves nothing when its stdin ends', async () => {
    await plant(5);
    server.child.stdin?.end();
    expect(await server.ended).toBe(0);
    expect(left()).toEqual([]);
  });

  it.runIf(wire === 'stdio')('leaves nothing when both streams break', async () => {
    await plant(5);
    server.child.stdout?.destroy();
    server.child.stdin?.destroy();
    await server.ended;
    expect(left()).toEqual([]);
  });

  it('leaves nothing when it is told to stop while starts are on their way', async () => {
    const starts = Array.from({ length: 20 }, () => client.start({ argv: ['sh', '-c', trees.escaped] }));
    for (const start of starts) start.catch(() => undefined);
    await starts[0];
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
    await Promise.allSettled(starts);
    expect(left()).toEqual([]);
  });
});

describe('the end of a lease', () => {
  it('leaves nothing of five trees, and the server goes on', async () => {
    const tag = new Tag();
    const server = await startListening(tag.env);
    try {
      const { url } = server;
      const client = await connect({ url, leaseMs: 300 });
      for (const kind of kinds) {
        const tree = new Watched(await client.start({ argv: ['sh', '-c', trees[kind]] }));
        await tree.see('ready');
      }
      const left = (): number[] => tag.pids().filter((pid) => pid !== server.pid);
      const { sessionId } = client;
      await client.detach();
      // The lease is not over yet.
      expect(left().length).toBeGreaterThan(5);
      await until(() => left().length === 0, 'the trees to end');
      await expect(connect({ url, resumeSessionId: sessionId })).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
      const next = await connect({ url });
      expect((await next.run(['echo', 'ok'])).text()).toBe('ok\n');
      await next.close();
      server.child.kill('SIGTERM');
      expect(await server.ended).toBe(0);
    } finally {
      server.child.kill('SIGKILL');
      await server.ended;
      tag.killAll();
    }
  });
});
