/** The command line of the server itself: `exec-server` without a command. */
import { limits } from '@exec-server/protocol';
import { type Command, Option } from 'commander';
import { httpChoice, parseListen, parseWhole } from '../args.js';
import { AUTH_MODES, chooseAuth, DEFAULT_CLOCK_SKEW_SECONDS } from '../auth/choice.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { foreignCommand, foreignFlags, refuseForeign } from './foreignFlags.js';
import { unknownCommand } from './sentences.js';
import { collect, examples, type Finish, listOf, type Options, textOf } from './options.js';

export function addServeOptions(program: Command, finish: Finish): void {
  program
    .option(
      '--listen <address>',
      'stdio, or ws://IP:PORT (port 0 picks a free one; the first line on stdout is the URL)',
      'ws://127.0.0.1:0',
    )
    .option(
      '--exit-on-stdin-close',
      'end when stdin ends, as the pipe of a parent that is gone; over stdio it always does',
    )
    .option('--session-ttl-ms <ms>', 'how long a session lives without its client (default: 80000)')
    .option(
      '--spool-dir <directory>',
      'where output that nobody has taken yet goes once memory is full (default: the temporary folder)',
    )
    .option(
      '--concurrent-requests <n>',
      'requests of one connection that run at a time; 1 is strictly one after the other (default: 64)',
    )
    .addOption(
      new Option('--ws-auth <mode>', 'who may connect: who has the token, or who has one that is signed').choices(
        AUTH_MODES,
      ),
    )
    .option('--ws-token-file <file>', 'the token that clients must present, for --ws-auth capability-token')
    .option('--ws-token-sha256 <hex>', 'or its SHA-256, so that the token itself need not be here')
    .option(
      '--ws-shared-secret-file <file>',
      'what tokens are signed with (JWT, HS256), at least 32 bytes, for --ws-auth signed-bearer-token',
    )
    .option('--ws-issuer <issuer>', 'the `iss` signed tokens must have (default: any)')
    .option('--ws-audience <audience>', 'the `aud` signed tokens must have (default: any)')
    .option(
      '--ws-max-clock-skew-seconds <n>',
      `how far the clock of who signs may be off (default: ${DEFAULT_CLOCK_SKEW_SECONDS})`,
    )
    .option('--allow-host <name>', 'a host name clients may use for this server, repeatable', collect)
    .option('--allow-origin <origin>', 'a web origin that may connect, repeatable', collect)
    .option('--allow-pid-1', 'serve as process 1 of a container: what its commands leave behind then stays as zombies')
    .option(
      '--allow-unauthenticated',
      'listen beyond loopback without a token: whoever reaches the port can run commands',
    )
    .option(
      '--allow-http',
      'make http requests for clients also where other machines reach this server (default: over stdio and on loopback alone)',
    )
    .option('--no-http', 'make no http requests for clients')
    .addOption(
      new Option('--log-level <level>', 'what goes to stderr')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('warn'),
    )
    .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 wrong command line; docs/errors.md has all of them.')
    .addHelpText(
      'after',
      examples([
        'exec-server --listen stdio',
        'exec-server --listen ws://127.0.0.1:7000',
        'exec-server --listen ws://0.0.0.0:7000 --ws-auth capability-token --ws-token-file token',
        'exec-server run -- npm test',
      ]),
    )
    .action((options: Options) => serveBy(options, program, finish));
  for (const flag of foreignFlags) {
    const option = new Option(flag).hideHelp();
    program.addOption(option).on(`option:${option.name()}`, () => refuseForeign(flag));
  }
}

async function serveBy(options: Options, program: Command, finish: Finish): Promise<void> {
  const [unknown] = program.args;
  const names = program.commands.map((command) => command.name());
  if (unknown !== undefined) {
    throw new CommandError(foreignCommand(unknown) ?? unknownCommand(unknown, names), ExitCode.usage);
  }
  const text = (name: string): string | undefined => textOf(options[name]);
  const whole = (flag: string, name: string, least: number, most?: number): number | undefined => {
    const value = text(name);
    return value === undefined ? undefined : parseWhole(flag, value, least, most);
  };
  const listen = parseListen(text('listen') ?? '');
  const auth = chooseAuth(
    {
      wsAuth: text('wsAuth'),
      wsTokenFile: text('wsTokenFile'),
      wsTokenSha256: text('wsTokenSha256'),
      wsSharedSecretFile: text('wsSharedSecretFile'),
      wsIssuer: text('wsIssuer'),
      wsAudience: text('wsAudience'),
      wsMaxClockSkewSeconds: text('wsMaxClockSkewSeconds'),
    },
    listen.kind,
  );
  // Loading takes a moment, in which the signal would end the program; it is answered from there on.
  if (process.platform !== 'win32') process.on('SIGUSR2', () => {});
  const { serve } = await import('../commands/serve.js');
  finish(
    await serve({
      listen,
      exitOnStdinClose: options['exitOnStdinClose'] === true,
      sessionTtlMs: whole('--session-ttl-ms', 'sessionTtlMs', 0, limits.MAX_SESSION_LEASE_MS),
      spoolDir: text('spoolDir'),
      concurrentRequests: whole('--concurrent-requests', 'concurrentRequests', 1),
      auth,
      allowHosts: listOf(options['allowHost']),
      allowOrigins: listOf(options['allowOrigin']),
      allowUnauthenticated: options['allowUnauthenticated'] === true,
      http: httpChoice(options['allowHttp'] === true, options['http'] === false),
      allowPid1: options['allowPid1'] === true,
      logLevel: text('logLevel') ?? 'warn',
    }),
  );
}
