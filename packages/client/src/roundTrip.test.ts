import { expect, it } from 'vitest';
import { connectFake, foreignReply, settle } from './testSupport/connectFake.js';
import { FakeClock } from './testSupport/fakeClock.js';
import { extendedReply } from './testSupport/fakeServer.js';

it('tells how long the answer took', async () => {
  const clock = new FakeClock();
  const { client, connection } = await connectFake({ internals: { clock } });
  const pinging = client.ping();
  const request = await connection.next('ping');
  clock.advance(7);
  connection.answer(request, {});
  expect(await pinging).toBe(7);
  await client.close();
});

it('leaves out the time in which there was no connection', async () => {
  const clock = new FakeClock();
  const { client, connection, server } = await connectFake({ internals: { clock } });
  const pinging = client.ping();
  await connection.next('ping');
  connection.cut();
  await settle();
  clock.advance(1_000);
  const next = await server.accept();
  await next.handshake(extendedReply('s1', { resumed: true }));
  const request = await next.next('ping');
  clock.advance(3);
  next.answer(request, {});
  expect(await pinging).toBe(3);
  await client.close();
});

it('asks a foreign server for its status', async () => {
  const { client, connection } = await connectFake({ reply: foreignReply });
  const pinging = client.ping();
  connection.answer(await connection.next('environment/status'), { status: 'ready' });
  expect(await pinging).toBeGreaterThanOrEqual(0);
  expect(connection.count('ping')).toBe(0);
  await client.close();
});

it('passes calls that wait for their turn, and gives up in time', async () => {
  const reply = extendedReply('s1', { limits: { pendingRequests: 1 } });
  const { client, connection } = await connectFake({ reply });
  for (let calls = 0; calls < 3; calls++) client.call('environment/info', {}).catch(() => undefined);
  await expect(client.ping({ timeoutMs: 5 })).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
  expect(connection.count('ping')).toBe(1);
  await client.close();
});
