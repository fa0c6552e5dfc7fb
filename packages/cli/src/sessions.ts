/** Takes up a session that is there, for the commands that look at it and leave it as it is. */
import type { Client } from '@exec-server/client';
import { CommandError, ExitCode } from './exitCodes.js';
import { asCommandError, openClient, type ServerChoice } from './link.js';
import { readSessionFile, type SessionRecord } from './sessionFile.js';

export interface SessionChoice extends ServerChoice {
  readonly sessionFile: string | undefined;
  /** An id from the command line or the environment. */
  readonly session: string | undefined;
}

/** How a command takes up its session. */
export interface Attachment {
  readonly attach?: 'observe' | undefined;
  readonly takeOver?: boolean | undefined;
  /** What the user can do while another client holds the session. */
  readonly otherWays?: string | undefined;
}

/** Runs `use` in the session, which is detached from again on every way out. */
export async function inSession(
  command: string,
  choice: SessionChoice,
  { attach, takeOver, otherWays }: Attachment,
  use: (client: Client) => Promise<number>,
): Promise<number> {
  const { url, sessionId, leaseMs, epoch } = chosen(choice);
  try {
    const client = await openClient(
      command,
      { url, tokenFile: choice.tokenFile },
      { resumeSessionId: sessionId, epoch, leaseMs, attach, takeOver },
    );
    try {
      return await use(client);
    } finally {
      await client.detach();
    }
  } catch (error) {
    throw asCommandError(error, { otherWays, sessionFile: choice.sessionFile });
  }
}

/** The options that name the session once more, for a command line to repeat; an id is a secret, and not shown. */
export function sessionWords({ sessionFile, url = 'URL' }: SessionChoice): string {
  return sessionFile === undefined ? `--url ${url}` : `--session-file ${sessionFile}`;
}

function chosen({ sessionFile, session, url }: SessionChoice): SessionRecord {
  if (sessionFile !== undefined) {
    const record = readSessionFile(sessionFile);
    if (record === undefined) {
      throw new CommandError(
        `--session-file ${sessionFile}: there is no such file; \`exec-server run --session-file ${sessionFile} --url URL -- COMMAND\` writes one`,
      );
    }
    // The id is a secret of the server that made it.
    if (url !== undefined && url !== record.url) {
      throw new CommandError(
        `--session-file ${sessionFile}: it names a session on ${record.url}, not on ${url}; leave --url out`,
        ExitCode.usage,
      );
    }
    return record;
  }
  if (url === undefined || session === undefined) {
    throw new CommandError(
      url === undefined
        ? 'which session: pass --session-file FILE, or --url URL and the id by EXEC_SERVER_SESSION or --session'
        : `which session on ${url}: pass its id by EXEC_SERVER_SESSION or --session, or --session-file FILE instead of --url`,
      ExitCode.usage,
    );
  }
  return { url, sessionId: session };
}
