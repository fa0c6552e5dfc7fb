/** The `exec-server` command: reads the command line, runs one command, ends with its exit code. */
import { PACKAGE_VERSION } from '@exec-server/protocol';
import { Command, CommanderError, Option } from 'commander';
import { parseEnvPair, parseListen, parseWhole } from './args.js';
import { CommandError, ExitCode } from './exitCodes.js';
import { addHostCommands } from './program/hostCommands.js';
import { collect, examples, listOf, serverChoice, textOf } from './program/options.js';
import { addSessionCommands } from './program/sessionCommands.js';

/** Every sentence on stderr begins with the name of the command. */
const asOurs = (text: string, write: (text: string) => void): void => write(text.replace(/^error: /, 'exec-server: '));

function build(finish: (code: number) => void): Command {
  const program = new Command('exec-server')
    .description('Runs commands for coding agents and remote environments; processes outlive the connection.')
    .version(PACKAGE_VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    // An operand that is no command gets a sentence of ours.
    .allowExcessArguments(true)
    .enablePositionalOptions()
    .configureOutput({ outputError: asOurs })
    .exitOverride()
    .option(
      '--listen <address>',
      'stdio, or ws://IP:PORT (port 0 picks a free one; the first line on stdout is the URL)',
      'ws://127.0.0.1:0',
    )
    .option('--session-ttl-ms <ms>', 'how long a session lives without its client (default: 80000)')
    .option(
      '--spool-dir <directory>',
      'where output that nobody has taken yet goes once memory is full (default: the temporary folder)',
    )
    .option(
      '--concurrent-requests <n>',
      'requests of one connection that run at a time; 1 is strictly one after the other',
    )
    .addOption(new Option('--ws-auth <mode>', 'who may connect').choices(['capability-token']))
    .option('--ws-token-file <file>', 'the token that clients must present, for --ws-auth capability-token')
    .option('--allow-host <name>', 'a host name clients may use for this server, repeatable', collect, [])
    .option('--allow-origin <origin>', 'a web origin that may connect, repeatable', collect, [])
    .option(
      '--allow-pid-1',
      'serve as process 1 of a container: what its commands leave behind then stays as zombies',
      false,
    )
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
      const [unknown] = program.args;
      if (unknown !== undefined) {
        throw new CommandError(
          `unknown command '${unknown}': there are run, shell, ps, kill, attach, doctor and demo, and without a command it serves`,
          ExitCode.usage,
        );
      }
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
          spoolDir: text('spoolDir'),
          concurrentRequests: whole('--concurrent-requests', 'concurrentRequests', 1),
          wsAuth: text('wsAuth') === 'capability-token' ? 'capability-token' : undefined,
          wsTokenFile: text('wsTokenFile'),
          allowHosts: listOf(options['allowHost']),
          allowOrigins: listOf(options['allowOrigin']),
          allowUnauthenticated: options['allowUnauthenticated'] === true,
          allowPid1: options['allowPid1'] === true,
          logLevel: text('logLevel') ?? 'warn',
        }),
      );
    });

  program
    .command('run')
    .description('Run one command on a server and exit with its code. Without --url a server is started for it.')
    .helpOption('-h, --help', 'print this help')
    .argument('<command...>', 'the program and its arguments')
    .passThroughOptions()
    .option('--url <url>', 'the server to use, ws:// or wss://')
    .option('--token-file <file>', 'the token to present to the server')
    .option('--cwd <directory>', "working directory on the server (default: the server's, or this one without --url)")
    .option('--env <name=value>', 'a variable for the command, repeatable', collect, [])
    .option('--tty', 'run it on a terminal of the size of this one; keys are passed on as they are typed')
    .option('--id <name>', 'what `ps`, `kill` and `attach` call it (default: a random id)')
    .option(
      '--session-file <file>',
      'run it in the session the file names, or in a new one that is then named there; the file is a secret',
    )
    .option('--detach', 'print the process id, and leave the command to its session; with --session-file')
    .option('--lease-ms <ms>', 'how long the session lives while nobody is connected (default: what the server says)')
    .addHelpText(
      'after',
      examples([
        'exec-server run -- npm test',
        'echo hi | exec-server run --url ws://127.0.0.1:7000 -- cat',
        'exec-server run --tty -- vi README.md',
        'exec-server run --url ws://127.0.0.1:7000 --session-file s --detach --lease-ms 3600000 --id build -- make',
      ]),
    )
    .action(async (command: string[], options: Record<string, unknown>) => {
      const { run } = await import('./commands/run.js');
      const lease = textOf(options['leaseMs']);
      finish(
        await run({
          ...serverChoice(options),
          command,
          cwd: textOf(options['cwd']),
          env: Object.fromEntries(listOf(options['env']).map(parseEnvPair)),
          processId: textOf(options['id']),
          tty: options['tty'] === true,
          sessionFile: textOf(options['sessionFile']),
          detach: options['detach'] === true,
          leaseMs: lease === undefined ? undefined : parseWhole('--lease-ms', lease, 0),
        }),
      );
    });

  addHostCommands(program, finish);
  addSessionCommands(program, finish);

  program
    .command('demo')
    .allowExcessArguments(false)
    .description('Cut the connection in the middle of a real job and show that nothing is lost.')
    .helpOption('-h, --help', 'print this help')
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

/** Resolves when what was written to a pipe has left; `exit` alone would drop it. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

const output = [process.stdout, process.stderr];
// A reader that has gone is no fault of this program; a command that cannot do without it listens itself.
for (const stream of output) stream.on('error', () => {});
const code = await main();
await Promise.all(output.map(flushed));
process.exit(code);
