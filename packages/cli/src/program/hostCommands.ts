/** The command line of `shell` and `doctor`. */
import type { Command } from 'commander';
import { addServerOptions, examples, type Finish, type Options, serverChoice, textOf } from './options.js';

export function addHostCommands(program: Command, finish: Finish): void {
  addServerOptions(program.command('shell'))
    .description("Open the login shell of the server's user on a terminal. Without --url a server is started for it.")
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'print this help')
    .option('--cwd <directory>', "where it begins (default: the user's home)")
    .addHelpText(
      'after',
      examples(['exec-server shell --url ws://127.0.0.1:7000 --token-file token', 'exec-server shell --cwd /srv']),
    )
    .action(async (options: Options) => {
      const { shell } = await import('../commands/shell.js');
      finish(await shell({ ...serverChoice(options), cwd: textOf(options['cwd']) }));
    });

  program
    .command('doctor')
    .description(
      'Say what works on this host: streams, /dev/std*, terminals, /proc, the guard. Exits with 0 when processes run, with 1 otherwise.',
    )
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'print this help')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['exec-server doctor', 'exec-server doctor --json']))
    .action(async (options: Options) => {
      const { doctor } = await import('../commands/doctor.js');
      finish(await doctor({ json: options['json'] === true }));
    });
}
