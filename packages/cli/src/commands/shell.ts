/** `exec-server shell`: the login shell of the server's user, on a terminal. */
import { basename } from 'node:path';
import { type Client, isClientError } from '@exec-server/client';
import { failureOfStart } from '../clientFailures.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { follow } from '../follow.js';
import { asCommandError, openClient, type ServerChoice } from '../link.js';
import { ownSize, terminalVariables } from '../ownTerminal.js';

export interface ShellOptions extends ServerChoice {
  readonly cwd: string | undefined;
}

export async function shell(options: ShellOptions): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new CommandError(
      'shell needs a terminal as its stdin and stdout; `exec-server run -- sh` does without',
      ExitCode.usage,
    );
  }
  let client: Client;
  try {
    client = await openClient('shell', options);
  } catch (error) {
    throw asCommandError(error);
  }
  try {
    const path = client.environmentInfo.shell?.path ?? '/bin/sh';
    const size = ownSize();
    const handle = await client
      .start({
        argv: [path, '-l'],
        env: terminalVariables(),
        tty: client.serverInfo === undefined ? true : (size ?? true),
        cwd: options.cwd ?? client.environmentInfo.userHomeDir,
      })
      .catch((error: unknown) => {
        throw isClientError(error) ? failureOfStart(basename(path), error, options) : error;
      });
    return (await follow(client, handle, { input: true, terminal: { size }, signals: 'leave' })).exitCode;
  } finally {
    await client.close();
  }
}
