/** Connections whose peer goes silent without an end, as the server sees them. */
import { once } from 'node:events';
import { limits } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ManualClock } from '../support/manualClock.js';
import { until } from '../support/until.js';

let clock: ManualClock;
let server: ExecServer;
let url: string;
beforeEach(async () => {
  clock = new ManualClock();
  server = createExecServer({ clock });
  ({ url } = await server.listen());
});
afterEach(() => server.close());

/** How far apart the server's looks at a peer are. */
const LOOK_MS = 5_000;

interface Peer {
  readonly socket: WebSocket;
  initialize(params?: object): Promise<{ result?: { sessionId: string }; error?: { data: { reason: string } } }>;
}

async function dial(options: { readonly autoPong: boolean }): Promise<Peer> {
  const socket = new WebSocket(url, options);
  socket.on('error', () => {});
  await once(socket, 'open');
  return {
    socket,
    initialize: async (params = {}) => {
      socket.send(JSON.stringify({ id: 1, method: 'initialize', params: { clientName: 'peer', ...params } }));
      const [data] = (await once(socket, 'message')) as [Buffer];
      return JSON.parse(data.toString()) as Awaited<ReturnType<Peer['initialize']>>;
    },
  };
}

/** The server has got what this peer sent. */
async function roundTrip({ socket }: Peer): Promise<void> {
  socket.ping();
  await once(socket, 'pong');
}

describe('a peer that goes silent without an end', () => {
  it('keeps its session for 25 s, and then loses it to the next one that resumes', async () => {
    const silent = await dial({ autoPong: false });
    const { result } = await silent.initialize({ attachId: 'silent' });
    const resume = { resumeSessionId: result?.sessionId };
    // The first look finds what came so far.
    clock.advance(LOOK_MS);
    clock.advance(limits.SUSPECT_MS - LOOK_MS);
    expect((await (await dial({ autoPong: true })).initialize(resume)).error?.data.reason).toBe('attachedElsewhere');
    clock.advance(LOOK_MS);
    const closed = once(silent.socket, 'close');
    expect((await (await dial({ autoPong: true })).initialize(resume)).result).toMatchObject({ resumed: true });
    await closed;
    const back = await (await dial({ autoPong: true })).initialize({ ...resume, attachId: 'silent' });
    expect(back.error?.data.reason).toBe('takenOver');
  });

  it('is cut after two minutes, and its session is detached', async () => {
    const silent = await dial({ autoPong: false });
    await silent.initialize();
    const closed = once(silent.socket, 'close');
    clock.advance(LOOK_MS + limits.IDLE_LIMIT_MS);
    expect((await closed)[0]).toBe(1006);
    await until(() => server.gauges().connections === 0, 'the connection to be gone');
    expect(server.gauges()).toMatchObject({ sessions: 1, attachedSessions: 0 });
  });

  it('is neither suspect nor cut while it answers pings', async () => {
    const peer = await dial({ autoPong: true });
    const { result } = await peer.initialize();
    for (let passed = 0; passed < 2 * limits.IDLE_LIMIT_MS; passed += limits.PING_INTERVAL_MS) {
      clock.advance(limits.PING_INTERVAL_MS);
      await roundTrip(peer);
    }
    const other = await dial({ autoPong: true });
    const refused = await other.initialize({ resumeSessionId: result?.sessionId });
    expect(refused.error?.data.reason).toBe('attachedElsewhere');
  });
});
