/** A TCP proxy on loopback, in front of a WebSocket server, that breaks connections on purpose: at any byte, by hand or by rule. */
import { createServer, type Server, type Socket } from 'node:net';
import {
  checkShape,
  type CutAction,
  type Direction,
  type FaultAction,
  FaultPlan,
  type FaultRule,
  type FlowShape,
} from './faultPlan.js';
import { ProxyConnection } from './proxyConnection.js';
import type { Seed } from './random.js';

/** What a proxy reports as it happens; `connection` counts forwarded dials from 1. */
export type FaultEvent =
  | { readonly type: 'connected'; readonly connection: number }
  /** A dial was accepted and reset at once. */
  | { readonly type: 'refused' }
  /** A rule came due and its action happens now. */
  | { readonly type: 'fault'; readonly connection: number; readonly action: FaultAction }
  /** `bytesUp` and `bytesDown` are those of this connection, at the moment of the cut. */
  | {
      readonly type: 'cut';
      readonly connection: number;
      readonly hard: boolean;
      readonly bytesUp: number;
      readonly bytesDown: number;
    }
  /** Both sockets of a connection are closed; the last event of each connection. */
  | { readonly type: 'closed'; readonly connection: number; readonly detail: string };

/** What a proxy stands in front of, and what it does by itself. */
export interface FaultProxyOptions {
  /** Address of the server, `ws://host:port[/path]`. TLS is not taken apart, so `wss:` is refused. */
  readonly target: string;
  /** What random cut points and split sizes are drawn from. Default 1. */
  readonly seed?: Seed | undefined;
  /** Faults that happen by themselves. Default none. */
  readonly rules?: readonly FaultRule[] | undefined;
  /** How bytes flow on new connections. Default: as they come. */
  readonly shape?:
    | {
        /** From clients to the server. */
        readonly up?: FlowShape | undefined;
        /** From the server to clients. */
        readonly down?: FlowShape | undefined;
      }
    | undefined;
  /** Told each event as it happens. Default: nobody. */
  readonly onEvent?: ((event: FaultEvent) => void) | undefined;
}

/** Totals over the life of a proxy. */
export interface FaultProxyCounters {
  /** Dials accepted and forwarded. */
  readonly connections: number;
  /** Connections open now. */
  readonly open: number;
  /** Connections that were cut, by hand or by rule. */
  readonly cuts: number;
  /** Dials that were reset because of `refuse`. */
  readonly refused: number;
  /** Bytes passed on from clients to the server, those of the HTTP upgrade included. */
  readonly bytesUp: number;
  /** Bytes passed on from the server to clients, those of the answer to the upgrade included. */
  readonly bytesDown: number;
}

/**
 * A running proxy. Methods that name a fault act on the connections open at that moment; later ones start healthy. A method
 * without a direction means both.
 */
export interface FaultProxy extends AsyncDisposable {
  /** Where clients connect instead of to the target. */
  readonly url: string;
  /** What a run is repeated with; see {@link describeSeed}. */
  readonly seed: Seed;
  /** Totals at the moment; each read makes a new object. */
  readonly counters: FaultProxyCounters;
  /** Cuts every connection now, by default with a reset. */
  cut(options?: Omit<CutAction, 'type'>): void;
  /** Cuts the first connection on which `count` more bytes have passed in this direction, the last of them included. */
  cutAfterBytes(direction: Direction, count: number): void;
  /** Arms one more rule; it counts from now on. Throws a RangeError for a count that is no whole number from 1. */
  addRule(rule: FaultRule): void;
  /** Resets the next so many dials (added to those still due), or all until `false`. */
  refuse(dials: number | boolean): void;
  /** Stops listening, so that a dial finds nobody there (`ECONNREFUSED`); open connections go on. */
  stopListening(): void;
  /** Listens again at the same port. Rejects when the port is taken, or the proxy closed. */
  startListening(): Promise<void>;
  /** Forwards later dials to another `ws:` address: a server that came back elsewhere. */
  setTarget(target: string): void;
  /**
   * Holds bytes back without losing any, for `ms` or until `release`; the sender feels it as backpressure after about 64
   * KiB and the kernel's buffers.
   */
  stall(direction?: Direction, ms?: number): void;
  /** Ends `stall`; what was held back flows on. */
  release(direction?: Direction): void;
  /** Keeps connections open, takes everything and passes on nothing, until they are cut. A side that leaves is not told on. */
  silence(): void;
  /** Ends one direction in order; the other goes on. */
  halfClose(direction: Direction): void;
  /** Changes how bytes flow on open connections and new ones; `{}` is as they come. */
  setShape(direction: Direction, shape: FlowShape): void;
  /** Stops listening, resets what is open, waits until every socket is closed. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts a proxy on a free loopback port. Rejects with a TypeError for a target that is no `ws:` address, with a
 * RangeError for a count or shape in which nothing could pass.
 *
 * @example
 * ```ts
 * const proxy = await startFaultProxy({ target: 'ws://127.0.0.1:7000', seed: 42 });
 * const client = await connect({ url: proxy.url });
 * proxy.cutAfterBytes('down', 10_000); // inside whatever frame that is
 * ```
 */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const proxy = new LoopbackProxy(options);
  await proxy.startListening();
  return proxy;
}

class LoopbackProxy implements FaultProxy {
  readonly seed: Seed;
  readonly #options: FaultProxyOptions;
  readonly #plan: FaultPlan<FaultAction>;
  readonly #server: Server;
  readonly #connections = new Set<ProxyConnection>();
  readonly #shape: Record<Direction, FlowShape | undefined>;
  readonly #totals = { connections: 0, cuts: 0, refused: 0, bytesUp: 0, bytesDown: 0 };
  #target: Target;
  #port = 0;
  #refusing = 0;
  #closed = false;
  /** Resolves when the server, once it stopped listening, has no accepted socket left. */
  #drained: Promise<void> = Promise.resolve();
  #whenEmpty: (() => void)[] = [];

  constructor(options: FaultProxyOptions) {
    this.seed = options.seed ?? 1;
    this.#options = options;
    this.#target = parseTarget(options.target);
    this.#plan = new FaultPlan(options.rules ?? [], this.seed);
    this.#shape = { up: options.shape?.up, down: options.shape?.down };
    checkShape(options.shape?.up ?? {});
    checkShape(options.shape?.down ?? {});
    // The client is read only once the server answers: what it sends meanwhile waits in the kernel.
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => this.#accept(socket));
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#port}${this.#target.path}`;
  }

  get counters(): FaultProxyCounters {
    return { ...this.#totals, open: this.#connections.size };
  }

  cut(options: Omit<CutAction, 'type'> = {}): void {
    this.#each(({ link }) => link.cut(options));
  }

  cutAfterBytes(direction: Direction, count: number): void {
    this.addRule({ when: { direction, afterBytes: count }, do: 'cut' });
  }

  addRule(rule: FaultRule): void {
    this.#plan.add(rule);
  }

  refuse(dials: number | boolean): void {
    if (typeof dials === 'number') this.#refusing += dials;
    else this.#refusing = dials ? Number.POSITIVE_INFINITY : 0;
  }

  stopListening(): void {
    if (!this.#server.listening) return;
    // The listener is gone at once; the callback also waits for the accepted sockets.
    this.#drained = new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async startListening(): Promise<void> {
    if (this.#closed) throw new Error('the fault proxy is closed');
    if (this.#server.listening) return;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (typeof address === 'object' && address !== null) this.#port = address.port;
  }

  setTarget(target: string): void {
    this.#target = parseTarget(target);
  }

  stall(direction?: Direction, ms?: number): void {
    this.#each(({ link }) => link.stall(direction, ms));
  }

  release(direction?: Direction): void {
    this.#each(({ link }) => link.release(direction));
  }

  silence(): void {
    this.#each(({ link }) => link.silence());
  }

  halfClose(direction: Direction): void {
    this.#each(({ link }) => link.apply({ type: 'halfClose', direction }));
  }

  setShape(direction: Direction, shape: FlowShape): void {
    checkShape(shape);
    this.#shape[direction] = shape;
    this.#each(({ link }) => link.setShape(direction, shape));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.stopListening();
    this.#each((connection) => connection.destroy());
    await this.#drained;
    if (this.#connections.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #each(action: (connection: ProxyConnection) => void): void {
    for (const connection of this.#connections) action(connection);
  }

  #accept(client: Socket): void {
    if (this.#refusing > 0 || this.#closed) {
      this.#refusing -= 1;
      this.#totals.refused += 1;
      client.on('error', () => {}); // The other side may be gone already, which is what was wanted.
      client.resetAndDestroy();
      this.#emit({ type: 'refused' });
      return;
    }
    this.#totals.connections += 1;
    const id = this.#totals.connections;
    const own = { bytesUp: 0, bytesDown: 0 };
    const connection: ProxyConnection = new ProxyConnection({
      client,
      target: this.#target,
      faults: this.#plan.openConnection(),
      shape: this.#shape,
      passed: (direction, bytes) => {
        const key = direction === 'up' ? 'bytesUp' : 'bytesDown';
        own[key] += bytes;
        this.#totals[key] += bytes;
      },
      connected: () => this.#emit({ type: 'connected', connection: id }),
      faulted: (action) => this.#emit({ type: 'fault', connection: id, action }),
      cut: (hard) => {
        this.#totals.cuts += 1;
        this.#emit({ type: 'cut', connection: id, hard, ...own });
      },
      gone: (detail) => {
        this.#connections.delete(connection);
        this.#emit({ type: 'closed', connection: id, detail });
        if (this.#connections.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
      },
    });
    this.#connections.add(connection);
  }

  #emit(event: FaultEvent): void {
    this.#options.onEvent?.(event);
  }
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

function parseTarget(target: string): Target {
  const url = new URL(target);
  if (url.protocol !== 'ws:') throw new TypeError(`the target of a fault proxy is a ws: address, not ${target}`);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 80 : Number(url.port),
    path: `${url.pathname === '/' ? '' : url.pathname}${url.search}`,
  };
}
