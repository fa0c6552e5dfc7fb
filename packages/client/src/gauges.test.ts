import { expect, it } from 'vitest';
import { connectFake, settle, startFake } from './testSupport/connectFake.js';

const nothing = {
  processes: 0,
  reorderBytes: 0,
  tailBytes: 0,
  backlogBytes: 0,
  stdinQueuedBytes: 0,
  httpQueuedBytes: 0,
  queuedBytes: 0,
  pendingCalls: 0,
};

it('are all nothing at the beginning and at the end', async () => {
  const { client, connection } = await connectFake();
  expect(client.gauges()).toEqual(nothing);
  const handle = await startFake(client, connection, 'p');
  connection.output('p', 1, 'one');
  connection.closedEvent('p', 2);
  await handle.closed();
  await settle();
  expect(client.gauges()).toEqual(nothing);
  await startFake(client, connection, 'running');
  await client.close();
  expect(client.gauges()).toEqual(nothing);
});

it('count what is held for order and for those who come late', async () => {
  const { client, connection } = await connectFake();
  await startFake(client, connection, 'p');
  connection.output('p', 2, 'four');
  await settle();
  expect(client.gauges()).toMatchObject({ processes: 1, reorderBytes: 4, tailBytes: 0 });
  connection.output('p', 1, 'six123');
  await settle();
  const { reorderBytes, tailBytes } = client.gauges();
  expect(reorderBytes).toBe(0);
  expect(tailBytes).toBeGreaterThanOrEqual(10);
  await client.close();
});

it('count calls and writes until they are answered', async () => {
  const { client, connection } = await connectFake();
  const handle = await startFake(client, connection, 'p');
  const writes = Promise.all([handle.write(new Uint8Array(1_000)), handle.write(new Uint8Array(500))]);
  const info = client.call('environment/info', {});
  const question = await connection.next('environment/info');
  const first = await connection.next('process/write');
  expect(client.gauges().pendingCalls).toBe(2);
  expect(client.gauges().stdinQueuedBytes).toBeGreaterThanOrEqual(1_500);
  connection.answer(first, { status: 'accepted' });
  connection.answer(await connection.next('process/write'), { status: 'accepted' });
  connection.answer(question, {});
  await Promise.all([writes, info]);
  expect(client.gauges()).toMatchObject({ pendingCalls: 0, stdinQueuedBytes: 0 });
  await client.close();
});

it('count what the transport has not sent', async () => {
  const { client, connection } = await connectFake();
  connection.pause();
  const call = client.call('environment/status', {});
  await settle();
  expect(client.gauges().queuedBytes).toBeGreaterThan(0);
  connection.resume();
  connection.answer(await connection.next('environment/status'), { status: 'ready' });
  await call;
  expect(client.gauges()).toMatchObject({ queuedBytes: 0, pendingCalls: 0 });
  await client.close();
});
