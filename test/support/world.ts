/** A server, the client in control of its one session, and observers, all in memory, with children that the test plays. */
import { type Client, connect, type ConnectOptions } from '@exec-server/client';
import { memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import { expect } from 'vitest';
import { Follower } from './follower.js';
import { ManualClock } from './manualClock.js';
import { type ModelProcess, WINDOW_BYTES } from './modelProcess.js';
import { type ScriptedChild, ScriptedPlatform } from './scriptedPlatform.js';

export const LEASE_MS = 1_000;
export const RETENTION_MS = 100_000;

/** One client with its connections, and what it follows. */
export class Party {
  readonly client: Client;
  readonly line: Line;
  readonly followers = new Map<ModelProcess, Follower>();

  constructor(client: Client, line: Line) {
    this.client = client;
    this.line = line;
  }

  follower(process: ModelProcess): Follower {
    const follower = this.followers.get(process);
    if (follower === undefined) throw new Error(`nobody follows ${process.id}`);
    return follower;
  }

  /** Everything there is has come, to those who are not slow on purpose. */
  async caughtUp(): Promise<void> {
    for (const follower of this.followers.values()) if (!follower.held) await follower.caughtUp();
  }

  /** Every handle and the client end with one of these codes; handles that were closed before have none. */
  async expectFailed(codes: readonly string[]): Promise<void> {
    for (const follower of this.followers.values()) expect([undefined, ...codes]).toContain(await follower.ended());
    await expect(this.client.call('environment/status', null)).rejects.toMatchObject({
      code: expect.stringMatching(new RegExp(`^(${codes.join('|')})$`)) as unknown,
    });
    await this.client.close();
  }
}

/** How one client reaches the server. */
class Line {
  refusing = false;
  readonly #server: () => ExecServer;
  #present: Transport | undefined;

  constructor(server: () => ExecServer) {
    this.#server = server;
  }

  readonly dial = (): Transport => {
    if (this.refusing) throw new Error('nobody listens');
    const [serverEnd, clientEnd] = memoryTransportPair();
    this.#present = clientEnd;
    // `accept` never rejects.
    void this.#server().accept(serverEnd);
    return clientEnd;
  };

  cut(): void {
    this.#present?.abort({ kind: 'cut', detail: 'cut by the test' });
  }
}

export class World {
  readonly clock = new ManualClock();
  platform = new ScriptedPlatform();
  server: ExecServer;
  #controller: Party | undefined;
  observers: Party[] = [];
  /** Writes that were made while there was no connection. */
  waiting: { readonly process: ModelProcess; readonly text: string; readonly outcome: Promise<string> }[] = [];

  private constructor() {
    this.server = this.#newServer();
  }

  static async open(): Promise<World> {
    const world = new World();
    world.#controller = await world.join();
    return world;
  }

  get controller(): Party {
    if (this.#controller === undefined) throw new Error('nobody is in control');
    return this.#controller;
  }

  child(index: number): ScriptedChild {
    const child = this.platform.children[index];
    if (child === undefined) throw new Error(`child ${index} was not started`);
    return child;
  }

  async join(options: Partial<ConnectOptions> = {}): Promise<Party> {
    const line = new Line(() => this.server);
    return new Party(await connect({ ...options, transport: line.dial }), line);
  }

  /** Follows each of these from a cursor on. */
  async follow(
    party: Party,
    processes: readonly ModelProcess[],
    options: { mayMiss: boolean; afterSeq: (process: ModelProcess) => number },
  ): Promise<void> {
    for (const process of processes) {
      const afterSeq = options.afterSeq(process);
      const handle = await party.client.attach(process.id, { afterSeq });
      const mayMiss = options.mayMiss || process.drops;
      party.followers.set(process, new Follower(handle, process, { afterSeq, mayMiss }));
    }
  }

  async caughtUp(): Promise<void> {
    for (const party of [this.controller, ...this.observers]) if (!party.line.refusing) await party.caughtUp();
  }

  takenOverBy(party: Party): void {
    this.#controller = party;
  }

  /** Another life of the server, in which nothing is known of the first. */
  async restart(): Promise<void> {
    const before = this.server;
    this.server = this.#newServer();
    for (const { line } of [this.controller, ...this.observers]) line.cut();
    await before.close();
    expect(before.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0, pendingRequests: 0 });
  }

  /** Everybody has learnt that the session is over; begins a new one. */
  async beginAnew(codes: readonly string[]): Promise<void> {
    for (const party of [this.controller, ...this.observers]) {
      party.line.refusing = false;
      await party.expectFailed(codes);
    }
    // A client knows of a stdin that it closed itself, or that was refused before.
    for (const { outcome } of this.waiting.splice(0)) expect([...codes, 'STDIN_CLOSED']).toContain(await outcome);
    this.observers = [];
    this.platform.children.length = 0;
    this.#controller = await this.join();
  }

  async close(): Promise<void> {
    const parties = [...this.observers, this.controller];
    for (const { line } of parties) line.refusing = false;
    for (const { client } of parties) await client.close();
    await this.server.close();
  }

  #newServer(): ExecServer {
    this.platform = new ScriptedPlatform();
    return createExecServer({
      clock: this.clock,
      platform: this.platform,
      guard: false,
      sessionLeaseMs: LEASE_MS,
      exitedRetentionMs: RETENTION_MS,
      retainedBytesPerProcess: WINDOW_BYTES,
    });
  }
}
