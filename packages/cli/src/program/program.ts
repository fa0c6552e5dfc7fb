/** The command line of `exec-server`, all commands of it. */
import { limits, PACKAGE_VERSION } from '@exec-server/protocol';
import { Command } from 'commander';
import { parseEnvPair, parseName, parseWhole } from '../args.js';
import { addFileCommands } from './fileCommands.js';
import { addHostCommands } from './hostCommands.js';
import { addServerOptions, collect, examples, listOf, serverChoice, textOf } from './options.js';
import { usageSentence } from './sentences.js';
import { addServeOptions } from './serveOptions.js';
import { addSessionCommands } from './sessionCommands.js';

/** `finish` is told the exit code of the command that ran; a wrong command line throws CommandError or CommanderError. */
export function buildProgram(finish: (code: number) => void): Command {
  const program = new Command('exec-server')
    .description(
      'Runs commands for coding agents and remote environments; processes outlive the connection. Without a command it is ' +
        'the server, until it is told to stop.',
    )
    .version(PACKAGE_VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    // An operand that is no command gets a sentence of ours.
    .allowExcessArguments(true)
    .enablePositionalOptions()
    .exitOverride();
  addServeOptions(program, finish);

  addServerOptions(program.command('run'))
    .description('Run one command on a server and exit with its code. Without --url a server is started for it.')
    .helpOption('-h, --help', 'print this help')
    .argument('<command...>', 'the program and its arguments')
    .passThroughOptions()
    .option('--cwd <directory>', "working directory on the server (default: the server's, or this one without --url)")
    .option('--env <name=value>', 'a variable for the command, repeatable', collect)
    .option('--tty', 'run it on a terminal of the size of this one; keys are passed on as they are typed')
    .option('--id <name>', 'what `ps`, `kill` and `attach` call it (default: a random id)')
    .option(
      '--session-file <file>',
      'run it in the session the file names, or in a new one that is then named there; the file is a secret',
    )
    .option('--detach', 'print the process id, and leave the command to its session; with --session-file')
    .option(
      '--lease-ms <ms>',
      'how long the session lives while nobody is connected (default: as the server has it, usually 80000)',
    )
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
      const { run } = await import('../commands/run.js');
      const lease = textOf(options['leaseMs']);
      const id = textOf(options['id']);
      finish(
        await run({
          ...serverChoice(options),
          command,
          cwd: textOf(options['cwd']),
          env: Object.fromEntries(listOf(options['env']).map(parseEnvPair)),
          processId: id === undefined ? undefined : parseName('--id', id),
          tty: options['tty'] === true,
          sessionFile: textOf(options['sessionFile']),
          detach: options['detach'] === true,
          leaseMs: lease === undefined ? undefined : parseWhole('--lease-ms', lease, 0, limits.MAX_SESSION_LEASE_MS),
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
    .option('--cuts <n>', 'how many times to cut, at least 3', '5')
    .option('--path <directory>', 'the folder whose files are hashed (default: the installed dependencies)')
    .addHelpText('after', examples(['exec-server demo', 'exec-server demo --cuts 10 --path /usr/lib']))
    .action(async (options: Record<string, unknown>) => {
      const { demo } = await import('../commands/demo.js');
      const cuts = parseWhole('--cuts', textOf(options['cuts']) ?? '5', 3);
      finish(await demo({ cuts, path: textOf(options['path']) }));
    });
  for (const command of [program, ...program.commands]) {
    const name = command === program ? program.name() : `${program.name()} ${command.name()}`;
    command.configureOutput({ outputError: (text, write) => write(usageSentence(text, name)) });
  }
  return program;
}
