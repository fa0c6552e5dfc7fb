/** Options of a client and what it shows of itself. Pure. */
import { limits, type ServerLimits } from '@exec-server/protocol';
import type { Clock } from './clock.js';
import { ClientError } from './errors.js';
import type { State } from './recovery/machine.js';
import type { Policy } from './recovery/policy.js';
import type { Dialer } from './transport/dialer.js';

/** `recovering`: the connection was lost and is being restored; calls wait. `failed` and `closed` are final. */
export type ClientState = 'connecting' | 'ready' | 'recovering' | 'failed' | 'closed';

/** What a server with the extensions says of itself in its first answer to `initialize`. */
export interface ServerInfo {
  /** Which program it is. */
  readonly serverInfo: {
    /** `exec-server` for ours. */
    readonly name: string;
    /** Of its package, as `0.1.0`. */
    readonly version: string;
  };
  /** Version of the extensions it speaks, from 1. */
  readonly protocolVersion: number;
  /** Whether it waits for acknowledgements of output. */
  readonly flowControl: boolean;
  /** Whether it can start processes on a terminal. */
  readonly terminal: boolean;
  /** Whether it has the additions to the file methods: moves, watches, archives, writes that go on after a cut. */
  readonly files: boolean;
  /** Whether it makes http requests for this client. */
  readonly http: boolean;
  /**
   * One life of the server: cursors and session ids of another one mean nothing here. Pass it as {@link
   * CommonOptions.epoch}.
   */
  readonly epoch: string;
  /** What it takes, in bytes and numbers. */
  readonly limits: Partial<ServerLimits>;
  /** How long the session lives while nobody is connected, in ms. */
  readonly leaseMs: number;
}

/** Options of a client, whatever carries its messages. */
export interface CommonOptions {
  /** Free text for the server's log. Default `exec-server-client`. */
  readonly clientName?: string | undefined;
  /** Whether a lost connection is restored. Default true where the transport can be dialed again; a stdio server cannot. */
  readonly reconnect?: boolean | undefined;
  /** Attempts per loss. Default: as many as `recoveryMs` allows. */
  readonly maxReconnects?: number | undefined;
  /** How long a lost connection is tried to be restored, in ms, from the loss on. Default 45,000; keep it below the lease. */
  readonly recoveryMs?: number | undefined;
  /** How long one connection attempt may take, in ms. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long the answer to `initialize` may take, in ms. Default 10,000. */
  readonly initializeTimeoutMs?: number | undefined;
  /** How long the session shall live while nobody is connected, in ms; the server caps it and has the default. */
  readonly leaseMs?: number | undefined;
  /** Takes up this session instead of a new one. Follow its processes with `attach`. */
  readonly resumeSessionId?: string | undefined;
  /**
   * The life of the server `resumeSessionId` and stored cursors belong to: `serverInfo.epoch` of the client that had them. A
   * server that was restarted since is then told apart, with SERVER_GONE, from one that let the session go.
   */
  readonly epoch?: string | undefined;
  /**
   * How to take up the session of `resumeSessionId`. One client at a time has `control` (the default). Any number may
   * `observe` beside it: they list, read and follow what there is, by the session id or its `observeId`; what would change
   * something is refused with SERVER_ERROR (`data.reason` is `readOnly`), and a process never waits for them: an observer
   * that is slow gets gaps.
   */
  readonly attach?: 'control' | 'observe' | undefined;
  /**
   * Takes control of the session of `resumeSessionId` from the client that has it, whose recovery then ends with TAKEN_OVER.
   * This is done once: a client that loses the session in turn does not take it back.
   */
  readonly takeOver?: boolean | undefined;
  /** Makes a gap in the output an error (OUTPUT_LOST) of the iterator. Default false: a gap is an event. */
  readonly errorOnGap?: boolean | undefined;
  /** Told each change of state, the first `ready` included. What it throws goes to `onLog`. */
  readonly onState?: ((state: ClientState, error?: ClientError) => void) | undefined;
  /** Time, for tests of your own. Default: the clock of the host. */
  readonly clock?: Clock | undefined;
  /** Told what happens to the connection, for a log; never has secrets or payloads. What it throws is dropped. */
  readonly onLog?: ((text: string) => void) | undefined;
}

/** Throws NOT_SUPPORTED, naming the option, for a way to attach that does not go together with the rest. */
export function checkAttach({ attach, takeOver, epoch, resumeSessionId }: CommonOptions): void {
  const observes = attach === 'observe';
  if (observes && takeOver === true) {
    throw new ClientError(
      'NOT_SUPPORTED',
      "takeOver takes control, which attach: 'observe' does without; pass one of them",
    );
  }
  const options = [
    ...(observes ? ["attach: 'observe'"] : []),
    ...(takeOver === true ? ['takeOver'] : []),
    ...(epoch === undefined ? [] : ['epoch']),
  ];
  const [option] = options;
  if (option === undefined || resumeSessionId !== undefined) return;
  throw new ClientError('NOT_SUPPORTED', `${option} needs resumeSessionId, the session to attach to; nothing was sent`);
}

export function policyOf(options: CommonOptions, dialer: Pick<Dialer, 'label' | 'redials'>): Policy {
  return {
    label: dialer.label,
    reconnect: dialer.redials && options.reconnect !== false,
    maxReconnects: options.maxReconnects ?? Number.POSITIVE_INFINITY,
    recoveryMs: options.recoveryMs ?? limits.RECOVERY_MS,
    connectTimeoutMs: options.connectTimeoutMs ?? limits.CONNECT_TIMEOUT_MS,
    initializeTimeoutMs: options.initializeTimeoutMs ?? limits.INITIALIZE_TIMEOUT_MS,
  };
}

export function publicState(state: State): ClientState {
  switch (state.name) {
    case 'dialing':
    case 'initializing':
      return 'connecting';
    case 'waiting':
    case 'redialing':
    case 'resuming':
    case 'catchingUp':
      return 'recovering';
    case 'ready':
    case 'failed':
    case 'closed':
      return state.name;
    default:
      return state satisfies never;
  }
}
