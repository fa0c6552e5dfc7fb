/** The session a `run` works in: one of its own, or the one a file names. */
import { type Client, isClientError } from '@exec-server/client';
import { CommandError, ExitCode } from './exitCodes.js';
import { asCommandError, openClient, type ServerChoice } from './link.js';
import { readSessionFile, removeSessionFile, type SessionRecord, writeSessionFile } from './sessionFile.js';

export interface RunSessionChoice extends ServerChoice {
  /** Names the session, or shall name it. */
  readonly sessionFile: string | undefined;
  /** How long the session shall live while nobody is attached. */
  readonly leaseMs: number | undefined;
}

export class RunSession {
  readonly client: Client;
  /** Whether it began with this command. */
  readonly isNew: boolean;
  readonly #file: string | undefined;

  private constructor(client: Client, isNew: boolean, file: string | undefined) {
    this.client = client;
    this.isNew = isNew;
    this.#file = file;
  }

  /** Throws CommandError. A session in the file that has ended is replaced by a new one. */
  static async open(choice: RunSessionChoice): Promise<RunSession> {
    try {
      return await RunSession.#open(choice);
    } catch (error) {
      throw asCommandError(error, {
        sessionFile: choice.sessionFile,
        otherWays: 'wait for that, or run this with another --session-file',
      });
    }
  }

  /**
   * Leaves a session that is to live on, was there before, has another client now, or is out of reach and may still be there for its
   * lease; ends one of our own and removes its file.
   */
  async end(how: 'detach' | 'close'): Promise<void> {
    const { failure } = this.client;
    const isOutOfReach = failure !== undefined && failure.code !== 'SESSION_EXPIRED' && failure.code !== 'SERVER_GONE';
    if (isOutOfReach || how === 'detach' || !this.isNew) {
      await this.client.detach();
      return;
    }
    await this.client.close();
    if (this.#file !== undefined) removeSessionFile(this.#file);
  }

  static async #open(choice: RunSessionChoice): Promise<RunSession> {
    const { sessionFile: file, tokenFile, leaseMs } = choice;
    if (file === undefined) return new RunSession(await openClient('run', choice, { leaseMs }), true, undefined);
    const record = readSessionFile(file);
    const server = { url: urlOf(choice, record), tokenFile };
    const wish = { leaseMs: leaseMs ?? record?.leaseMs };
    if (record !== undefined) {
      const client = await openClient('run', server, {
        ...wish,
        resumeSessionId: record.sessionId,
        epoch: record.epoch,
      }).catch(ended);
      if (client !== undefined) return new RunSession(client, false, file);
    }
    const client = await openClient('run', server, wish);
    try {
      const epoch = client.serverInfo?.epoch;
      writeSessionFile(file, { url: server.url, sessionId: client.sessionId, ...wish, epoch });
    } catch (error) {
      await client.close();
      throw error;
    }
    return new RunSession(client, true, file);
  }
}

function urlOf({ url, sessionFile = '' }: RunSessionChoice, record: SessionRecord | undefined): string {
  if (url === undefined && record === undefined) {
    throw new CommandError(
      `--session-file ${sessionFile}: there is no such file yet, so pass --url as well, to say on which server the session shall be`,
      ExitCode.usage,
    );
  }
  if (url !== undefined && record !== undefined && url !== record.url) {
    throw new CommandError(
      `--session-file ${sessionFile}: it names a session on ${record.url}; remove the file to begin one on ${url}`,
      ExitCode.usage,
    );
  }
  return url ?? record?.url ?? '';
}

/** Undefined for a session that has ended; what else went wrong is thrown again. */
function ended(error: unknown): undefined {
  if (!isClientError(error) || (error.code !== 'SESSION_EXPIRED' && error.code !== 'SERVER_GONE')) throw error;
}
