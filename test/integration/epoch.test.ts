/** A resume names the life of the server it belongs to. */
import { connect } from '@exec-server/client';
import { memoryTransportPair } from '@exec-server/protocol';
import { createExecServer } from '@exec-server/server';
import { startFaultProxy } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import type { RawMessage } from '../support/raw.js';
import { flowControl, RawServed, rawLinks } from '../support/rawServed.js';
import { until } from '../support/until.js';

describe.each(rawLinks)('a session of another life of the server, over %s', (link) => {
  it('is refused with the present epoch before it is looked for, to resume and to observe', async () => {
    const served = new RawServed(link);
    const open = async (params: object): Promise<RawMessage> => {
      const raw = await served.dial();
      raw.send({ id: 1, method: 'initialize', params: { clientName: 'raw', ...flowControl, ...params } });
      return await raw.answerTo(1);
    };
    const { sessionId, epoch } = (await open({ attachId: 'me' })).result ?? {};
    for (const attach of ['control', 'observe']) {
      for (const resumeSessionId of [sessionId, 'never seen']) {
        const refused = await open({ resumeSessionId, attach, epoch: 'another life' });
        expect(refused).toMatchObject({ error: { code: -32600, data: { reason: 'otherEpoch', epoch } } });
      }
      const found = await open({ resumeSessionId: sessionId, attach, epoch, attachId: 'me' });
      expect(found).toMatchObject({ result: { resumed: true, epoch } });
    }
    expect(await open({ resumeSessionId: 'never seen', epoch })).toMatchObject({
      error: { data: { reason: 'unknownSession' } },
    });
    // Without a session to resume there is no cursor it could belong to.
    expect(await open({ epoch: 'another life' })).toMatchObject({ result: { resumed: false, epoch } });
    await served.expectClean();
  });
});

describe('a client whose server stops', () => {
  it.each(['websocket', 'memory'] as const)('is told so, and does not look for it, over %s', async (link) => {
    const server = createExecServer();
    let dials = 0;
    const states: string[] = [];
    const onState = (state: string): void => void states.push(state);
    const proxy = await startFaultProxy({ target: (await server.listen()).url });
    const transport = () => {
      dials += 1;
      const [theirs, ours] = memoryTransportPair();
      void server.accept(theirs);
      return ours;
    };
    const client = await connect(link === 'memory' ? { transport, onState } : { url: proxy.url, onState });
    const handle = await client.start({ argv: ['sleep', '600'] });
    await server.close();
    await until(() => client.state === 'failed', 'the client to fail');
    expect(client.failure).toMatchObject({ code: 'SERVER_GONE', data: { retryable: false } });
    expect(client.failure?.message).toMatch(/was stopped.*processes of this session were ended with it/);
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SERVER_GONE' });
    expect(states).toEqual(['ready', 'failed']);
    expect(link === 'memory' ? dials : proxy.counters.connections).toBe(1);
    await proxy.close();
  });
});

describe('a client whose server was restarted', () => {
  it('says so, whether it controlled the session or observed it, and fails once', async () => {
    const first = createExecServer();
    const proxy = await startFaultProxy({ target: (await first.listen()).url });
    const controller = await connect({ url: proxy.url });
    const handle = await controller.start({ argv: ['sleep', '600'] });
    const observer = await connect({ url: proxy.url, resumeSessionId: controller.sessionId, attach: 'observe' });
    const second = createExecServer();
    proxy.setTarget((await second.listen()).url);
    proxy.cut();
    await until(() => [controller, observer].every(({ state }) => state === 'failed'), 'both to fail');
    const epoch = expect.any(String) as unknown;
    for (const { failure } of [controller, observer]) {
      expect(failure).toMatchObject({ code: 'SERVER_GONE', data: { reason: 'otherEpoch', serverData: { epoch } } });
      expect(failure?.message).toMatch(/was restarted; the processes of this session and their output are gone/);
    }
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SERVER_GONE', data: { cursor: 0 } });
    expect(proxy.counters.connections).toBe(4);
    for (const end of [controller, observer, proxy, first, second]) await end.close();
  });
});
