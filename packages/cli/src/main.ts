/** The `exec-server` command: reads the command line, runs one command, ends with its exit code. */
import { PACKAGE_VERSION } from '@exec-server/protocol';
import { Command, CommanderError, Option } from 'commander';
import { parseEnvPair, parseListen, parseServerUrl, parseWhole } from './args.js';
import { CommandError, ExitCode } from './exitCodes.js';

const collect = (value: string, previous: readonly string[]): readonly string[] => [...previous, value];

function build(finish: (code: number) => void): Command {
  const program = new Command('exec-server')
    .description('Runs commands for coding agents and remote environments; processes outlive the connection.')
    .version(PACKAGE_VERSION, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .allowExcessArguments(false)
    .enablePositionalOptions()
    .exitOverride()
    .option(
      '--listen <address>',
      'stdio, or ws://IP:PORT (port 0 picks a free one; the first line on stdout is the URL)',
      'ws://127.0.0.1:0',
    )
    .option('--session-ttl-ms <ms>', 'how long a session lives without its client (default: 80000)')
    .option(
      '--concurrent-requests <n>',
      'requests of one connection that run at a time; 1 is strictly one after the other',
    )
    .addOption(new Option('--ws-auth <mode>', 'who may connect').choices(['capability-token']))
    .option('--ws-token-file <file>', 'the token that clients must present, for --ws-auth capability-token')
    .option('--allow-host <name>', 'a host name clients may use for this server, repeatable', collect, [])
    .option('--allow-origin <origin>', 'a web origin that may connect, repeatable', collect, [])
    .option(
      '--allow-unauthenticated',
      'listen beyond loopback without a token: whoever reaches the port can run commands',
      false,
    )
    .addOption(
      new Option('--log-level <level>', 'what goes to stderr')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('warn'),
    )
    .addHelpText(
      'after',
      examples([
        'exec-server --listen stdio',
        'exec-server --listen ws://127.0.0.1:7000',
        'exec-server run -- npm test',
      ]),
    )
    .action(async (options: Record<string, unknown>) => {
      const { serve } = await import('./commands/serve.js');
      const text = (name: string): string | undefined => textOf(options[name]);
      const whole = (flag: string, name: string, least: number): number | undefined => {
        const value = text(name);
        return value === undefined ? undefined : parseWhole(flag, value, least);
      };
      finish(
        await serve({
          listen: parseListen(text('listen') ?? ''),
          sessionTtlMs: whole('--session-ttl-ms', 'sessionTtlMs', 0),
          concurrentRequests: whole('--concurrent-requests', 'concurrentRequests', 1),
          wsAuth: text('wsAuth') === 'capability-token' ? 'capability-token' : undefined,
          wsTokenFile: text('wsTokenFile'),
          allowHosts: listOf(options['allowHost']),
          allowOrigins: listOf(options['allowOrigin']),
          allowUnauthenticated: options['allowUnauthenticated'] === true,
          logLevel: text('logLevel') ?? 'warn',
        }),
      );
    });

  program
    .command('run')
    .description('Run one command on a server and exit with its code. Without --url a server is started for it.')
    .helpOption('--help', 'print this help')
    .argument('<command...>', 'the program and its arguments')
    .passThroughOptions()
    .option('--url <url>', 'the server to use, ws:// or wss://')
    .option('--token-file <file>', 'the token to present to the server')
    .option('--cwd <directory>', "working directory on the server (default: the server's, or this one without --url)")
    .option('--env <name=value>', 'a variable for the command, repeatable', collect, [])
    .addHelpText(
      'after',
      examples(['exec-server run -- npm test', 'echo hi | exec-server run --url ws://127.0.0.1:7000 -- cat']),
    )
    .action(async (command: string[], options: Record<string, unknown>) => {
      const { run } = await import('./commands/run.js');
      const url = textOf(options['url']);
      finish(
        await run({
          command,
          url: url === undefined ? undefined : parseServerUrl(url),
          tokenFile: textOf(options['tokenFile']),
          cwd: textOf(options['cwd']),
          env: Object.fromEntries(listOf(options['env']).map(parseEnvPair)),
        }),
      );
    });

  program
    .command('demo')
    .description('Cut the connection in the middle of a real job and show that nothing is lost.')
    .helpOption('--help', 'print this help')
    .option('--cuts <n>', 'how many times to cut', '5')
    .option('--path <directory>', 'the folder whose files are hashed (default: the installed dependencies)')
    .addHelpText('after', examples(['exec-server demo', 'exec-server demo --cuts 10 --path /usr/lib']))
    .action(async (options: Record<string, unknown>) => {
      const { demo } = await import('./commands/demo.js');
      const cuts = parseWhole('--cuts', textOf(options['cuts']) ?? '5', 3);
      finish(await demo({ cuts, path: textOf(options['path']) }));
    });
  return program;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const listOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
const examples = (lines: readonly string[]): string => `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`;

async function main(): Promise<number> {
  let code: number = ExitCode.ok;
  try {
    await build((finished) => (code = finished)).parseAsync(process.argv);
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (error instanceof CommandError) {
      process.stderr.write(`exec-server: ${error.message}\n`);
      return error.exitCode;
    }
    process.stderr.write(`exec-server: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return ExitCode.failure;
  }
}

const code = await main();
// What was written to a pipe still leaves: `exit` alone would drop it.
process.stdout.write('', () => process.exit(code));
