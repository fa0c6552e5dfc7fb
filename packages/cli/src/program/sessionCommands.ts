/** The command line of `ps`, `kill` and `attach`. */
import type { Command } from 'commander';
import { parseWhole } from '../args.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { addSessionOptions, examples, type Finish, type Options, sessionChoice, textOf } from './options.js';

const DEFAULT_GRACE_MS = 5_000;
const TAKE_OVER = 'take control of the session from the client that has it, whose command then ends';

export function addSessionCommands(program: Command, finish: Finish): void {
  addSessionOptions(program.command('ps'))
    .description('List the processes of a session, also while another client holds it.')
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'print this help')
    .option('--json', 'print everything the server tells, as JSON')
    .addHelpText(
      'after',
      examples([
        'exec-server run --url ws://127.0.0.1:7000 --session-file s --detach -- npm test',
        'exec-server ps --session-file s',
        'EXEC_SERVER_SESSION=$observe_id exec-server ps --url ws://127.0.0.1:7000',
      ]),
    )
    .action(async (options: Options) => {
      const { ps } = await import('../commands/ps.js');
      finish(await ps({ ...sessionChoice(options), json: options['json'] === true }));
    });

  addSessionOptions(program.command('kill'))
    .description('End a process of a session: SIGTERM, and SIGKILL when its grace is over.')
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'print this help')
    .argument('<process-id>', 'the process, as `exec-server ps` shows it')
    .option('--signal <name>', 'send this signal to its process group, and nothing else')
    .option('--grace <ms>', `how long it has after SIGTERM (default: ${DEFAULT_GRACE_MS}; 0: SIGKILL at once)`)
    .option('--tree', 'end what has left its process group as well')
    .option('--take-over', TAKE_OVER)
    .addHelpText(
      'after',
      examples([
        'exec-server kill --session-file s build',
        'exec-server kill --session-file s --signal INT build',
        'exec-server kill --session-file s --take-over build',
      ]),
    )
    .action(async (processId: string, options: Options) => {
      const { kill } = await import('../commands/kill.js');
      const [signal, grace] = [textOf(options['signal']), textOf(options['grace'])];
      const tree = options['tree'] === true;
      if (signal !== undefined && (grace !== undefined || tree)) {
        throw new CommandError(
          '--signal sends a signal and nothing else: leave out --grace and --tree',
          ExitCode.usage,
        );
      }
      const graceMs = grace === undefined ? DEFAULT_GRACE_MS : parseWhole('--grace', grace, 0);
      const takeOver = options['takeOver'] === true;
      finish(await kill({ ...sessionChoice(options), processId, signal, graceMs, tree, takeOver }));
    });

  addSessionOptions(program.command('attach'))
    .description('Show the output of a process of a session and exit with its code. Ctrl-C leaves it running.')
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'print this help')
    .argument('<process-id>', 'the process, as `exec-server ps` shows it')
    .option('--after <seq>', 'begin behind this event (default: with the first that is kept)')
    .option('--observe', 'look on, also while another client holds the session: keys and signals are not passed on')
    .option('--take-over', TAKE_OVER)
    .addHelpText(
      'after',
      '\nOn a terminal, keys go to a process that runs on one; Ctrl-] leaves it running. With --observe the id of the\n' +
        'session may be its observe id, which lets look on and nothing else.\n' +
        examples([
          'exec-server attach --session-file s build',
          'exec-server attach --session-file s --after 41 build',
          'exec-server attach --session-file s --observe build',
          'exec-server attach --session-file s --take-over build',
        ]),
    )
    .action(async (processId: string, options: Options) => {
      const { attach } = await import('../commands/attach.js');
      const afterSeq = parseWhole('--after', textOf(options['after']) ?? '0', 0);
      const [observe, takeOver] = [options['observe'] === true, options['takeOver'] === true];
      if (observe && takeOver) {
        throw new CommandError(
          '--observe leaves control where it is, and --take-over takes it: pass one',
          ExitCode.usage,
        );
      }
      finish(await attach({ ...sessionChoice(options), processId, afterSeq, observe, takeOver }));
    });
}
