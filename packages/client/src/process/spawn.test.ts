import { describe, expect, it } from 'vitest';
import { connectFake, settle } from '../testSupport/connectFake.js';

describe('spawn', () => {
  it('feels like a child of Node: pipes, pid, exit, close', async () => {
    const { client, connection } = await connectFake();
    const spawning = client.spawn(['cat'], { env: { A: '1' } });
    const request = await connection.next('process/start');
    expect(request.params).toMatchObject({ argv: ['cat'], env: { A: '1' }, pipeStdin: true });
    const processId = String(request.params['processId']);
    connection.answer(request, { processId, sandboxType: 'none', pid: 42 });
    const child = await spawning;
    expect([child.pid, child.exitCode, child.signalCode]).toEqual([42, null, null]);
    const killing = child.kill();
    const signal = await connection.next('process/signal');
    expect(signal.params).toMatchObject({ signal: 'SIGTERM' });
    connection.answer(signal, { delivered: true });
    expect(await killing).toBe(true);
    connection.output(processId, 1, 'out');
    const exit = { processId, seq: 2, exitCode: 143, signal: 'SIGTERM', sandboxDenied: false };
    connection.notify('process/exited', exit);
    connection.closedEvent(processId, 3);
    expect(await child.exited).toMatchObject({ exitCode: 143, signal: 'SIGTERM' });
    await child.closed;
    expect([child.exitCode, child.signalCode]).toEqual([143, 'SIGTERM']);
    const { value } = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe('out');
    await client.close();
  });

  it('has no stdin where none was asked for', async () => {
    const { client, connection } = await connectFake();
    const [child] = await Promise.all([client.spawn(['x'], { stdin: 'none' }), connection.start()]);
    expect(child.stdin).toBeNull();
    await client.close();
    await expect(child.exited).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('is terminated by its signal, and not any more once it has exited', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const options = { signal: abort.signal };
    const [running] = await Promise.all([client.spawn(['x'], options), connection.start()]);
    const [ended, endedId] = await Promise.all([client.spawn(['y'], options), connection.start()]);
    connection.exited(endedId, 1);
    await ended.exited;
    await settle();
    abort.abort();
    const { processId } = running.handle;
    expect((await connection.next('process/terminate')).params).toEqual({ processId });
    await settle();
    expect(connection.count('process/terminate')).toBe(1);
    await client.close();
  });
});
