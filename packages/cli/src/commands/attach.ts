/** `exec-server attach`: the output of a process of a session, from a cursor on, and its exit code. */
import { type Client, isClientError } from '@exec-server/client';
import { failureOfCursor } from '../clientFailures.js';
import { follow } from '../follow.js';
import { say } from '../link.js';
import { inSession, type SessionChoice, sessionWords } from '../sessions.js';
import { findProcess } from './kill.js';

export interface AttachOptions extends SessionChoice {
  readonly processId: string;
  /** Last event that is not wanted any more; 0: everything that is kept. */
  readonly afterSeq: number;
  /** Look on: whoever holds the session keeps it, and neither keys nor signals are passed on. */
  readonly observe: boolean;
  /** Take control of the session from whoever has it. */
  readonly takeOver: boolean;
}

/** Ctrl-], as telnet has it. */
const DETACH_KEY = 0x1d;

export function attach(options: AttachOptions): Promise<number> {
  const attachment = {
    attach: options.observe ? ('observe' as const) : undefined,
    takeOver: options.takeOver,
    otherWays: 'or pass --observe to look on, or --take-over to take control of it',
  };
  return inSession('attach', options, attachment, (client) => followIt(client, options));
}

async function followIt(client: Client, options: AttachOptions): Promise<number> {
  const { processId, afterSeq, observe } = options;
  const { tty, state } = await findProcess(client, processId);
  const handle = await client.attach(processId, { afterSeq }).catch((error: unknown) => {
    throw (isClientError(error) ? failureOfCursor(error, processId) : undefined) ?? error;
  });
  const interactive = !observe && tty && process.stdin.isTTY && (state === 'running' || state === 'starting');
  if (interactive) say('Ctrl-] leaves the process running');
  const again = (): string =>
    `exec-server attach ${sessionWords(options)} ${observe ? '--observe ' : ''}--after ${handle.cursor} ${processId}`;
  const { exitCode, left } = await follow(client, handle, {
    again,
    input: interactive,
    ...(interactive ? { terminal: { size: undefined }, detachKey: DETACH_KEY } : {}),
    signals: 'leave',
  });
  if (left) say(`left ${processId} running; \`${again()}\` goes on from here`);
  return exitCode;
}
