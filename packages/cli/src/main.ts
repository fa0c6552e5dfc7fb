/** The `exec-server` command: reads the command line, runs one command, ends with its exit code. */
import { PACKAGE_VERSION } from '@exec-server/protocol';
import { Command, CommanderError } from 'commander';
import { parseEnvPair, parseWhole } from './args.js';
import { CommandError, ExitCode } from './exitCodes.js';
import { addFileCommands } from './program/fileCommands.js';
import { addHostCommands } from './program/hostCommands.js';
import { collect, examples, listOf, serverChoice, textOf } from './program/options.js';
import { addServeOptions } from './program/serveOptions.js';
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
    .exitOverride();
  addServeOptions(program, finish);

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
  addFileCommands(program, finish);

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
