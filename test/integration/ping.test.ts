/** `ping` against real servers. */
import { ping } from '@exec-server/client';
import { capabilityToken, createExecServer } from '@exec-server/server';
import { startFaultProxy } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manualClock.js';

describe('a ping', () => {
  it('is true for a server that lets it in, and leaves neither session nor connection', async () => {
    const server = createExecServer();
    const { url } = await server.listen({ authenticate: capabilityToken('right') });
    expect(await ping(url, { token: 'right' })).toBe(true);
    expect(server.gauges()).toMatchObject({ sessions: 0, processes: 0 });
    expect(await ping(url, { token: 'wrong' })).toBe(false);
    expect(await ping(url)).toBe(false);
    await server.close();
    expect(await ping(url, { token: 'right' })).toBe(false);
    expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0 });
  });

  it('whose goodbye is lost leaves a session that ends by itself at once', async () => {
    const clock = new ManualClock();
    const server = createExecServer({ clock });
    await using proxy = await startFaultProxy({
      target: (await server.listen()).url,
      rules: [{ when: { direction: 'up', beforeMessage: (text) => text.includes('session/close') }, do: 'cut' }],
    });
    expect(await ping(proxy.url)).toBe(true);
    while (server.gauges().attachedSessions > 0) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1);
    expect(server.gauges()).toMatchObject({ sessions: 0, connections: 0 });
    await server.close();
  });
});
