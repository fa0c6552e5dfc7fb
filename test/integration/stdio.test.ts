import { connect } from '@exec-server/client';
import { describe, expect, it } from 'vitest';
import { childrenOf, isAlive, stdioCommand } from '../support/links.js';
import { until } from '../support/until.js';

async function serverWithTree(): Promise<{
  client: Awaited<ReturnType<typeof connect>>;
  server: number;
  pids: number[];
}> {
  const before = new Set(childrenOf(process.pid));
  const client = await connect({ command: [...stdioCommand] });
  const server = childrenOf(process.pid).find((pid) => !before.has(pid)) ?? 0;
  const handle = await client.start({ argv: ['sh', '-c', 'trap "" TERM INT HUP; sleep 600 & echo $!; wait'] });
  const pids = [handle.pid ?? 0];
  for await (const event of handle) {
    if (event.type !== 'output') continue;
    pids.push(Number(Buffer.from(event.bytes).toString()));
    break;
  }
  return { client, server, pids };
}

describe('a server started by its client', () => {
  it('ends with the client, and its whole tree with it', async () => {
    const { client, server, pids } = await serverWithTree();
    expect([server, ...pids].every(isAlive)).toBe(true);
    await client.close();
    expect(isAlive(server)).toBe(false);
    await until(() => !pids.some(isAlive), 'the children to die');
  });

  it('is a typed outcome when it dies under the client', async () => {
    const { client, server, pids } = await serverWithTree();
    const handle = await client.start({ argv: ['sleep', '600'] });
    process.kill(server, 'SIGKILL');
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SERVER_GONE' });
    await expect(client.start({ argv: ['true'] })).rejects.toMatchObject({ code: 'SERVER_GONE' });
    await client.close();
    // A killed server cannot clean up behind itself.
    for (const leader of [pids[0] ?? 0, handle.pid ?? 0]) process.kill(-leader, 'SIGKILL');
  });

  it('ends when the program that started it is killed', async () => {
    const { client, server, pids } = await serverWithTree();
    // The end of its input is all a server sees of a parent that is gone.
    await client.detach();
    await until(() => ![server, ...pids].some(isAlive), 'the server and its tree to end');
  });
});
