/** What a child process looks like to everything above the host: streams, exit, signals to its group. Types only. */

/** How a child ended; exactly one member is not null. */
export interface ChildExit {
  /** Exit code of a child that ended by itself. */
  readonly code: number | null;
  /** Name of the signal it died of, as `SIGKILL`. */
  readonly signal: string | null;
}

/** One output stream of a child. */
export interface OutputSource {
  /** Which stream it is; `pty` is the only one of a child on a terminal. */
  readonly name: 'stdout' | 'stderr' | 'pty';
  /** Starts delivery. `ended` is called once, after the last bytes. The bytes belong to the listener. */
  start(listener: { bytes(bytes: Uint8Array): void; ended(): void }): void;
  /** Stops delivery: the pipe fills, and the writes of the child block. */
  pause(): void;
  /** Delivers again. */
  resume(): void;
  /** Stops delivery and frees the descriptor; `ended` is called if it was not. */
  destroy(): void;
}

/** The stdin of a child. */
export interface StdinSink {
  /** Bytes given to `write` and not yet taken by the pipe. */
  readonly queuedBytes: number;
  /** Writes in call order; `taken` is called when the pipe took the bytes, or with an error when the child closed its end. */
  write(bytes: Uint8Array, taken: (error?: Error) => void): void;
  /** EOF after what is queued. */
  end(): void;
  /** Called once when the child closed its end or the sink was destroyed; late registration still gets it. */
  onBroken(listener: () => void): void;
  /** Closes it and drops what is queued. */
  destroy(): void;
}

/** The terminal a child runs on. */
export interface TerminalControl {
  /** Throws WireError `invalidParams`, or `processEnded` after the exit. */
  resize(size: { readonly cols: number; readonly rows: number }): void;
  /** Signals the group that has the terminal, which a shell gives to the job it runs. */
  signalForeground(signal: string): 'delivered' | 'gone';
}

/** A running child; the leader of its own group and session. */
export interface SpawnedChild {
  /** Process id, and the id of the child's group and session. */
  readonly pid: number;
  /** `stdout` and `stderr`, or `pty` alone. None delivers before its `start`. */
  readonly outputs: readonly OutputSource[];
  /** Undefined when the request said `stdin: 'none'`. */
  readonly stdin: StdinSink | undefined;
  /** When it began, as the host counts it: with the pid it names one process for good. Undefined where the host cannot tell. */
  readonly startTime?: number | undefined;
  /** Present when the request had a `terminal`. */
  readonly terminal?: TerminalControl | undefined;
  /** How many other processes hold its output streams open, as far as the host can tell. */
  countHolders?(): Promise<number>;
  /** Called once, when the child was reaped; late registration still gets it. */
  onExit(listener: (exit: ChildExit) => void): void;
  /** Signals the whole group; `gone` when there is none left that is provably ours. Throws WireError `signalFailed` otherwise. */
  signalGroup(signal: string): 'delivered' | 'gone';
}

/** What to start, and how. */
export interface SpawnRequest {
  /** Program first. */
  readonly argv: readonly string[];
  /** `argv[0]` as the program sees it. */
  readonly arg0?: string | undefined;
  /** Absolute path. */
  readonly cwd: string;
  /** The whole environment; nothing of the server's is added. */
  readonly env: Readonly<Record<string, string>>;
  /** `none`: `/dev/null`. A terminal always has a stdin. */
  readonly stdin: 'none' | 'pipe';
  /** Size of the terminal to run on, in cells; undefined: pipes. */
  readonly terminal?:
    | {
        /** 1 to 65,535. */
        readonly cols: number;
        /** 1 to 65,535. */
        readonly rows: number;
      }
    | undefined;
}

/** What the host can do; injected, so that tests run with a host that lacks signals. */
export interface Platform {
  /** Signal names the host knows; empty: it has no signals. */
  readonly signals: readonly string[];
  /**
   * Rejects with a WireError of the start family; then nothing is left. `cancelled` is asked right before the fork:
   * when it says true, the start fails with `startCancelled`.
   */
  spawn(request: SpawnRequest, cancelled?: () => boolean): Promise<SpawnedChild>;
  /** Whether it can give a process a terminal; absent: it cannot. */
  terminals?(): Promise<boolean>;
  /** Frees pooled descriptors and helpers; running children stay. */
  close(): Promise<void>;
}
