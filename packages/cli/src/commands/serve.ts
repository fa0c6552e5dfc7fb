/** `exec-server --listen …`: serves until it is told to stop. */
import { access, constants, stat } from 'node:fs/promises';
import { type Authenticate, createExecServer, type ExecServer, type Log, serveStdio } from '@exec-server/server';
import { pino } from 'pino';
import type { ListenTarget } from '../args.js';
import { authenticateBy } from '../auth/authenticate.js';
import type { AuthChoice } from '../auth/choice.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { listenFault } from '../hostFaults.js';
import { say } from '../link.js';

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
  const gauges = answerGauges();
  if (options.spoolDir !== undefined) await checkSpool(options.spoolDir);
  const log = stderrLog(options.logLevel);
  const warn = (text: string): void => log('warn', text);
  const authenticate = options.auth === undefined ? undefined : authenticateBy(options.auth, warn);
  const server = createExecServer({
    sessionLeaseMs: options.sessionTtlMs,
    spoolDir: options.spoolDir,
    concurrentRequests: options.concurrentRequests,
    http: options.http,
    log,
  });
  const stopped = stopSignal(log);
  gauges.of(server);
  try {
    const { listen } = options;
    if (listen.kind === 'stdio') {
      if (process.stdin.isTTY) {
        say('serving on stdin and stdout, for a program that starts this and speaks JSON-RPC; Ctrl-D ends it');
      }
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

/** Once memory is full is too late to learn that there is nowhere to put output. */
async function checkSpool(path: string): Promise<void> {
  const fault = (what: string): CommandError => new CommandError(`--spool-dir ${path}: ${what}`);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw fault('there is no such folder; create it first');
  if (!found.isDirectory()) throw fault('it is no folder');
  await access(path, constants.W_OK | constants.X_OK).catch(() => {
    throw fault('no files can be made in it; change its permissions, or run the server as another user');
  });
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
    if (code === undefined) {
      throw new CommandError(
        `refusing to listen on ${shown} without authentication: whoever reaches it could run commands; ` +
          'listen on 127.0.0.1, or pass --ws-auth capability-token --ws-token-file FILE (or --allow-unauthenticated)',
        ExitCode.usage,
      );
    }
    const why = listenFault(code, port) ?? (error instanceof Error ? error.message : String(error));
    throw new CommandError(`cannot listen on ${shown}: ${why}`);
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

/**
 * At SIGUSR2 one line says what the server holds, whatever the log level: somebody has asked. Set up before the server is ready,
 * and kept while it closes: a signal that nobody handles ends the program, and would leave its children behind.
 */
function answerGauges(): { of(server: ExecServer): void } {
  let server: ExecServer | undefined;
  const log = stderrLog('info');
  const answer = (): void => {
    if (server === undefined) log('info', 'this server is not ready yet');
    else log('info', 'what this server holds', { ...server.gauges() });
  };
  // Windows has no such signal.
  if (process.platform !== 'win32') process.on('SIGUSR2', answer);
  return { of: (ready) => void (server = ready) };
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
