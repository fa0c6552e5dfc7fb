/** `exec-server --listen …`: serves until it is told to stop. */
import { type Authenticate, createExecServer, type ExecServer, type Log, serveStdio } from '@exec-server/server';
import { pino } from 'pino';
import type { ListenTarget } from '../args.js';
import { authenticateBy } from '../auth/authenticate.js';
import type { AuthChoice } from '../auth/choice.js';
import { CommandError, ExitCode } from '../exitCodes.js';

export interface ServeOptions {
  readonly listen: ListenTarget;
  /** End with stdin; over stdio it is the connection, and its end is the end in any case. */
  readonly exitOnStdinClose: boolean;
  readonly sessionTtlMs: number | undefined;
  readonly spoolDir: string | undefined;
  readonly concurrentRequests: number | undefined;
  /** Undefined: whoever reaches the listener may connect. */
  readonly auth: AuthChoice | undefined;
  readonly allowHosts: readonly string[];
  readonly allowOrigins: readonly string[];
  readonly allowUnauthenticated: boolean;
  /** Whether clients may make http requests; undefined: where they come from decides. */
  readonly http: boolean | undefined;
  readonly allowPid1: boolean;
  readonly logLevel: string;
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export async function serve(options: ServeOptions): Promise<number> {
  refuseProcessOne(process.pid, options.allowPid1);
  const authenticate = options.auth === undefined ? undefined : authenticateBy(options.auth);
  const log = stderrLog(options.logLevel);
  const server = createExecServer({
    sessionLeaseMs: options.sessionTtlMs,
    spoolDir: options.spoolDir,
    concurrentRequests: options.concurrentRequests,
    http: options.http,
    log,
  });
  const stopped = stopSignal(log);
  try {
    const { listen } = options;
    if (listen.kind === 'stdio') {
      await Promise.race([serveStdio(server, process.stdin, process.stdout), stopped]);
    } else {
      const orphaned = options.exitOnStdinClose ? [stdinClosed(log)] : [];
      const url = await bind(server, listen, options, authenticate);
      // A reader that has gone away is no reason to stop serving.
      process.stdout.on('error', () => {});
      process.stdout.write(`${url}\n`);
      await Promise.race([stopped, ...orphaned]);
    }
  } finally {
    await server.close();
  }
  return ExitCode.ok;
}

/** Orphans of a container become children of its process 1, and Node can reap none that it did not start. */
export function refuseProcessOne(pid: number, allowed: boolean): void {
  if (pid !== 1 || allowed) return;
  throw new CommandError(
    'refusing to serve as process 1: what commands leave behind would stay as zombies; ' +
      'start it under an init (docker run --init, or tini), or pass --allow-pid-1',
    ExitCode.usage,
  );
}

async function bind(
  server: ExecServer,
  { host, port }: Extract<ListenTarget, { kind: 'websocket' }>,
  options: ServeOptions,
  authenticate: Authenticate | undefined,
): Promise<string> {
  const shown = `ws://${host.includes(':') ? `[${host}]` : host}:${port}`;
  try {
    const listener = await server.listen({
      host,
      port,
      authenticate,
      allowUnauthenticated: options.allowUnauthenticated,
      allowedHosts: options.allowHosts,
      allowedOrigins: options.allowOrigins,
    });
    return listener.url;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') throw new CommandError(`cannot listen on ${shown}: the port is in use`);
    if (code === undefined) {
      throw new CommandError(
        `refusing to listen on ${shown} without authentication: whoever reaches it could run commands; ` +
          'pass --ws-auth with a token file or a shared secret, or --allow-unauthenticated',
        ExitCode.usage,
      );
    }
    throw new CommandError(`cannot listen on ${shown}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Lines to stderr: stdout belongs to the protocol, or to the URL. */
function stderrLog(level: string): Log {
  const logger = pino({ level, base: null }, pino.destination({ dest: 2, sync: true }));
  return (lineLevel, message, fields) => {
    const error = fields?.['error'];
    logger[lineLevel]({ ...fields, ...(error instanceof Error ? { error: error.stack } : {}) }, message);
  };
}

/** Resolves at the first signal that asks to stop; at the second the program ends at once. */
function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of STOP_SIGNALS) {
      process.on(signal, () => {
        if (asked) process.exit(ExitCode.failure);
        asked = true;
        log('info', 'stopping', { signal });
        resolve();
      });
    }
  });
}

/** Resolves when stdin is over, as the pipe of a parent that has ended is; what comes over it meanwhile does not count. */
function stdinClosed(log: Log): Promise<void> {
  return new Promise((resolve) => {
    // An error ends it as well, and its close event follows.
    process.stdin.on('error', () => {});
    for (const end of ['end', 'close'] as const) {
      process.stdin.once(end, () => {
        log('info', 'stopping', { reason: 'stdin is closed' });
        resolve();
      });
    }
    process.stdin.resume();
  });
}
