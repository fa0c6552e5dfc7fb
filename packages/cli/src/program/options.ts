/** What the commands have in common on the command line, and the values of options as the commands take them. */
import type { Command } from 'commander';
import { parseServerUrl } from '../args.js';
import type { ServerChoice } from '../link.js';
import type { SessionChoice } from '../sessions.js';

export type Options = Readonly<Record<string, unknown>>;
/** Told the exit code of the command that ran. */
export type Finish = (code: number) => void;

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
export const listOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
export const collect = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value];
export const examples = (lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`;

/** A session id is a secret: no server and no process this command starts inherits it. */
const sessionOfEnvironment = process.env['EXEC_SERVER_SESSION'];
delete process.env['EXEC_SERVER_SESSION'];

export function addServerOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the server to use, ws:// or wss://')
    .option('--token-file <file>', 'a file that holds the token the server wants (default: none is presented)');
}

export function serverChoice(options: Options): ServerChoice {
  const url = textOf(options['url']);
  return { url: url === undefined ? undefined : parseServerUrl(url), tokenFile: textOf(options['tokenFile']) };
}

/** For the commands that take up a session that is there. */
export function addSessionOptions(command: Command): Command {
  return addServerOptions(
    command
      .option('--session-file <file>', 'the session, as `exec-server run --session-file` wrote it')
      .option(
        '--session <id>',
        'the session by its id, with --url; it is a secret that every user of this host can read in the list of ' +
          'processes, so better put it into EXEC_SERVER_SESSION or use --session-file',
      ),
  );
}

export function sessionChoice(options: Options): SessionChoice {
  return {
    ...serverChoice(options),
    sessionFile: textOf(options['sessionFile']),
    session: textOf(options['session']) ?? sessionOfEnvironment,
  };
}
