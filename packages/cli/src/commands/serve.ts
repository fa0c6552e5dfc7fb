/** `exec-server --listen …`: serves until it is told to stop. */
import { capabilityToken, createExecServer, type ExecServer, type Log, serveStdio } from '@exec-server/server';
import { pino } from 'pino';
import type { ListenTarget } from '../args.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { readTokenFile } from '../tokenFile.js';

export interface ServeOptions {
  readonly listen: ListenTarget;
  readonly sessionTtlMs: number | undefined;
  readonly spoolDir: string | undefined;
  readonly concurrentRequests: number | undefined;
  readonly wsAuth: 'capability-token' | undefined;
  readonly wsTokenFile: string | undefined;
  readonly allowHosts: readonly string[];
  readonly allowOrigins: readonly string[];
  readonly allowUnauthenticated: boolean;
  readonly allowPid1: boolean;
  readonly logLevel: string;
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export async function serve(options: ServeOptions): Promise<number> {
  refuseProcessOne(process.pid, options.allowPid1);
  const authenticate = authentication(options);
  const log = stderrLog(options.logLevel);
  const server = createExecServer({
    sessionLeaseMs: options.sessionTtlMs,
    spoolDir: options.spoolDir,
    concurrentRequests: options.concurrentRequests,
    log,
  });
  const stopped = stopSignal(log);
  try {
    const { listen } = options;
    if (listen.kind === 'stdio') {
      await Promise.race([serveStdio(server, process.stdin, process.stdout), stopped]);
    } else {
      const url = await bind(server, listen, options, authenticate);
      // A reader that has gone away is no reason to stop serving.
      process.stdout.on('error', () => {});
      process.stdout.write(`${url}\n`);
      await stopped;
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
  authenticate: ReturnType<typeof authentication>,
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
          'pass --ws-auth capability-token --ws-token-file FILE, or --allow-unauthenticated',
        ExitCode.usage,
      );
    }
    throw new CommandError(`cannot listen on ${shown}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function authentication(options: ServeOptions): ReturnType<typeof capabilityToken> | undefined {
  const { wsAuth, wsTokenFile, listen } = options;
  if (wsAuth === undefined && wsTokenFile === undefined) return undefined;
  const usage = (message: string): CommandError => new CommandError(message, ExitCode.usage);
  if (listen.kind === 'stdio') throw usage('WebSocket auth requires a WebSocket listener, not stdio');
  if (wsAuth === undefined) throw usage('--ws-token-file needs --ws-auth capability-token');
  if (wsTokenFile === undefined) throw usage('--ws-auth capability-token needs --ws-token-file FILE');
  return capabilityToken(readTokenFile('--ws-token-file', wsTokenFile));
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
