import { expect, it } from 'vitest';
import type { Client } from './client.js';
import { type ConnectOptions, connectWith } from './connect.js';
import { LazyClient, lazyClient } from './lazyClient.js';
import { settle } from './testSupport/connectFake.js';
import { extendedReply, FakeServer } from './testSupport/fakeServer.js';

it('connects at first use, once for everybody who waits', async () => {
  const server = new FakeServer();
  const lazy = lazyClient({ transport: server.dial });
  await settle();
  expect(server.dials).toBe(0);
  const both = Promise.all([lazy.get(), lazy.get()]);
  await (await server.accept()).handshake(extendedReply('s1'));
  const [first, second] = await both;
  expect(first).toBe(second);
  expect(await lazy.get()).toBe(first);
  expect(server.dials).toBe(1);
  await lazy.close();
  await expect(lazy.get()).rejects.toMatchObject({ code: 'CLOSED' });
});

it('stays with its client over a cut', async () => {
  const server = new FakeServer();
  const lazy = lazyClient({ transport: server.dial });
  const getting = lazy.get();
  const connection = await server.accept();
  await connection.handshake(extendedReply('s1'));
  const client = await getting;
  connection.cut();
  expect(await lazy.get()).toBe(client);
  await (await server.accept()).handshake(extendedReply('s1', { resumed: true }));
  expect(await lazy.get()).toBe(client);
  await lazy.close();
});

it('tries again after a connection that did not come about', async () => {
  const server = new FakeServer();
  server.refusal = new Error('down');
  const lazy = lazyClient({ transport: server.dial });
  await expect(lazy.get()).rejects.toMatchObject({ code: 'CONNECT_FAILED' });
  server.refusal = undefined;
  const getting = lazy.get();
  await (await server.accept()).handshake(extendedReply('s1'));
  expect((await getting).state).toBe('ready');
  await lazy.close();
});

it('replaces a client that failed, and runs on the new one', async () => {
  const server = new FakeServer();
  const lazy = lazyClient({ transport: server.dial, reconnect: false });
  const getting = lazy.get();
  const connection = await server.accept();
  await connection.handshake(extendedReply('s1'));
  const first = await getting;
  connection.cut();
  await settle();
  expect(first.state).toBe('failed');
  const running = lazy.run(['x']);
  const next = await server.accept();
  const initialize = await next.handshake(extendedReply('s2'));
  expect(initialize.params['resumeSessionId']).toBeNull();
  const processId = await next.start();
  next.exited(processId, 1, 6);
  next.closedEvent(processId, 2);
  expect((await running).exitCode).toBe(6);
  expect(await lazy.get()).not.toBe(first);
  await lazy.close();
});

it('does not replace a stdio client: what it held ended with it', async () => {
  const server = new FakeServer();
  const connectTo = (): Promise<Client> => connectWith({ transport: server.dial, reconnect: false }, {});
  // What a program without types may pass on.
  const options: ConnectOptions = Object.assign({ url: undefined }, { command: ['unused'] as const });
  const lazy = new LazyClient(options, connectTo);
  const getting = lazy.get();
  const connection = await server.accept();
  await connection.handshake(extendedReply('s1'));
  const first = await getting;
  connection.cut();
  await settle();
  expect(first.state).toBe('failed');
  expect(await lazy.get()).toBe(first);
  expect(server.dials).toBe(1);
  await lazy.close();
});

it('does not try a transport that has ended for a second time', async () => {
  const server = new FakeServer();
  const lazy = lazyClient({ transport: server.dial() });
  const getting = lazy.get();
  const connection = await server.accept();
  await connection.handshake(extendedReply('s1'));
  const client = await getting;
  connection.cut();
  await settle();
  expect(client.state).toBe('failed');
  expect(await lazy.get()).toBe(client);
  await lazy.close();
});

it('takes a session over with its first client alone', async () => {
  const server = new FakeServer();
  const lazy = lazyClient({ transport: server.dial, resumeSessionId: 's1', takeOver: true });
  const getting = lazy.get();
  const connection = await server.accept();
  const reply = extendedReply('s1', { resumed: true });
  expect((await connection.handshake(reply)).params).toMatchObject({ takeOver: true });
  const first = await getting;
  connection.cut();
  const refused = await server.accept();
  refused.refuse(await refused.next('initialize'), -32010, 'taken over', { reason: 'takenOver' });
  await refused.closed;
  expect(first.failure).toMatchObject({ code: 'TAKEN_OVER' });
  const again = lazy.get();
  const next = await server.accept();
  expect((await next.handshake(reply)).params).not.toHaveProperty('takeOver');
  await again;
  await lazy.close();
});
