/** A server and a client over a connection that goes wrong by a schedule. */
import { type Client, type ClientState, connect } from '@exec-server/client';
import { memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import {
  type FaultRule,
  faultTransport,
  type FaultyTransport,
  type MessageFault,
  type Seed,
  startFaultProxy,
} from '@exec-server/testing';
import type { FaultSchedule } from './faultSchedule.js';

/** What the faults act on. */
interface Carrier {
  /** How the client reaches the server. */
  readonly address: { readonly url: string } | { readonly transport: () => Transport };
  arm(): void;
  refuse(dials: number): void;
  close(): Promise<void>;
}

export class FaultLink {
  readonly client: Client;
  readonly server: ExecServer;
  /** What happened, in order: faults, and the client's log. */
  readonly log: string[];
  readonly #carrier: Carrier;

  private constructor(client: Client, server: ExecServer, carrier: Carrier, log: string[]) {
    this.client = client;
    this.server = server;
    this.#carrier = carrier;
    this.log = log;
  }

  /** The first connection is sound: what breaks it is no loss. */
  static async open(schedule: FaultSchedule, seed: Seed): Promise<FaultLink> {
    const log: string[] = [];
    const server = createExecServer({ guard: false });
    const onFault = (action: object): void => void log.push(`FAULT ${JSON.stringify(action)}`);
    const carrier =
      schedule.link === 'memory'
        ? memoryCarrier(server, schedule, onFault)
        : await proxyCarrier(server, schedule, seed, onFault);
    let losses = 0;
    const onState = (state: ClientState): void => {
      if (state !== 'recovering') return;
      carrier.refuse(schedule.refusals[losses % schedule.refusals.length] ?? 0);
      losses += 1;
    };
    const client = await connect({ ...carrier.address, onState, onLog: (text) => log.push(text) });
    carrier.arm();
    return new FaultLink(client, server, carrier, log);
  }

  /** How many faults took place. */
  get faults(): number {
    return this.log.filter((line) => line.startsWith('FAULT')).length;
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.#carrier.close();
    await this.server.close();
  }
}

async function proxyCarrier(
  server: ExecServer,
  { rules }: FaultSchedule,
  seed: Seed,
  onFault: (action: object) => void,
): Promise<Carrier> {
  const { url } = await server.listen();
  const proxy = await startFaultProxy({
    target: url,
    seed,
    onEvent: (event) => {
      if (event.type === 'fault') onFault(event.action);
    },
  });
  return {
    address: { url: proxy.url },
    arm: () => {
      for (const rule of rules) proxy.addRule(rule);
    },
    refuse: (dials) => proxy.refuse(dials),
    close: () => proxy.close(),
  };
}

/** Each connection is a pair of its own; a rule that was due on one is not armed on the next. */
function memoryCarrier(server: ExecServer, { rules, end }: FaultSchedule, onFault: (action: object) => void): Carrier {
  const left = new Set(rules.filter(isMessageRule));
  let armed = false;
  let refused = 0;
  let present: FaultyTransport | undefined;
  const arm = (): void => {
    armed = true;
    for (const rule of left) present?.addRule(rule);
  };
  const transport = (): Transport => {
    if (refused > 0) {
      refused -= 1;
      throw new Error('refused by the schedule');
    }
    const [serverEnd, clientEnd] = memoryTransportPair();
    const faulty = faultTransport(end === 'client' ? clientEnd : serverEnd, {
      end,
      onFault: (action) => {
        onFault(action);
        for (const rule of left) if (rule.do === action) left.delete(rule);
        // The client leaves a server that does not hear it.
        if (action.type === 'silence') clientEnd.abort({ kind: 'cut', detail: 'cut by the schedule' });
      },
    });
    present = faulty;
    if (armed) arm();
    // `accept` never rejects.
    void server.accept(end === 'server' ? faulty : serverEnd);
    return end === 'client' ? faulty : clientEnd;
  };
  return {
    address: { transport },
    arm,
    refuse: (dials) => (refused += dials),
    close: () => {
      present?.cut();
      return Promise.resolve();
    },
  };
}

function isMessageRule(rule: FaultRule): rule is FaultRule<MessageFault> {
  return typeof rule.do === 'string' || rule.do.type !== 'shape';
}
