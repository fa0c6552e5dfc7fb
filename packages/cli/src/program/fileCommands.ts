/** The command line of `cp`, `cat` and `ls`. */
import type { Command } from 'commander';
import { CommandError, ExitCode } from '../exitCodes.js';
import { parseOperand, parseRemote } from '../operands.js';
import { addServerOptions, examples, type Finish, type Options, serverChoice } from './options.js';

const OWN_SERVER = 'Without --url a server is started for it.';
const RELATIVE = "What is relative begins at the server's working directory.";

export function addFileCommands(program: Command, finish: Finish): void {
  addServerOptions(program.command('cp'))
    .description(`Copy files and folders to a server, from it, or on it. ${OWN_SERVER}`)
    .helpOption('-h, --help', 'print this help')
    .argument('<path...>', 'sources and, last, the destination; remote:PATH is a path of the server')
    .option('-r, --recursive', 'copy folders with what is in them')
    .option('--no-clobber', 'refuse to replace what exists')
    .option('--follow-symlinks', 'copy what links lead to, and not the links')
    .option('-q, --quiet', 'say nothing but what went wrong')
    .addHelpText(
      'after',
      `\nA folder is copied into a folder that exists, under its own name, as cp does it; FOLDER/. copies what is in it. A slash\n` +
        `at the end of the destination means a folder. ${RELATIVE}\n` +
        'Modes and times are kept. After a lost connection it goes on where it was.\n' +
        examples([
          'exec-server cp --url ws://127.0.0.1:7000 build.tar remote:/srv/',
          'exec-server cp --url ws://127.0.0.1:7000 -r src remote:project',
          'exec-server cp --url ws://127.0.0.1:7000 -r remote:project/out/. out',
          'exec-server cp --url ws://127.0.0.1:7000 remote:/srv/a remote:/srv/b',
        ]),
    )
    .action(async (paths: string[], options: Options) => {
      const operands = paths.map(parseOperand);
      const destination = operands.pop();
      if (destination === undefined || operands.length === 0) {
        throw new CommandError(
          'cp needs a source and a destination, as in `exec-server cp build.tar remote:/srv/`',
          ExitCode.usage,
        );
      }
      const { cp } = await import('../commands/cp.js');
      finish(
        await cp({
          ...serverChoice(options),
          sources: operands,
          destination,
          recursive: options['recursive'] === true,
          overwrite: options['clobber'] !== false,
          followSymlinks: options['followSymlinks'] === true,
          quiet: options['quiet'] === true,
        }),
      );
    });

  addServerOptions(program.command('cat'))
    .description(`Write files of a server to stdout. ${OWN_SERVER}`)
    .helpOption('-h, --help', 'print this help')
    .argument('<path...>', 'files of the server, with remote: in front or without')
    .addHelpText(
      'after',
      `\n${RELATIVE}\n` +
        examples([
          'exec-server cat --url ws://127.0.0.1:7000 /etc/hostname',
          'exec-server cat --url ws://127.0.0.1:7000 log.gz | gunzip | head',
        ]),
    )
    .action(async (paths: string[], options: Options) => {
      const { cat } = await import('../commands/cat.js');
      finish(await cat({ ...serverChoice(options), operands: paths.map(parseRemote) }));
    });

  addServerOptions(program.command('ls'))
    .description(`List files and folders of a server. ${OWN_SERVER}`)
    .helpOption('-h, --help', 'print this help')
    .argument('[path...]', "of the server, with remote: in front or without (default: the server's working directory)")
    .option('-l, --long', 'kind and mode, size, time of the last change (UTC) and target of a link as well')
    .option('-a, --all', 'names that begin with a dot as well')
    .addHelpText(
      'after',
      `\nOne name a line; control characters and what is no UTF-8 are shown as escapes. ${RELATIVE}\n` +
        examples([
          'exec-server ls --url ws://127.0.0.1:7000 -l /srv',
          'exec-server ls --url ws://127.0.0.1:7000 -la remote:project',
        ]),
    )
    .action(async (paths: string[], options: Options) => {
      const { ls } = await import('../commands/ls.js');
      const operands = (paths.length === 0 ? ['.'] : paths).map(parseRemote);
      const [long, all] = [options['long'] === true, options['all'] === true];
      finish(await ls({ ...serverChoice(options), operands, long, all }));
    });
}
