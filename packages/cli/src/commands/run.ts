/** `exec-server run`: one command, its streams passed through, its exit code as ours. */
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { type Client, type ClientState, connect, isClientError, type ProcessHandle } from '@exec-server/client';
import { CommandError, ExitCode } from '../exitCodes.js';
import { ownServerCommand } from '../ownServer.js';
import { readTokenFile } from '../tokenFile.js';

export interface RunOptions {
  readonly command: readonly string[];
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** Exit codes of shells for a program that is missing, and for one that cannot be executed. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
/** 128 + SIGPIPE: the reader of our output has gone. */
const READER_GONE = 141;

/** Signals passed on to the command. */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export async function run(options: RunOptions): Promise<number> {
  const client = await open(options);
  try {
    const handle = await start(client, options);
    return await follow(handle);
  } finally {
    await client.close();
  }
}

async function open(options: RunOptions): Promise<Client> {
  const { url, tokenFile } = options;
  const onState = stateLine();
  try {
    if (url === undefined) {
      if (tokenFile !== undefined) throw new CommandError('--token-file needs --url', ExitCode.usage);
      return await connect({ command: ownServerCommand(), clientName: 'exec-server run', onState });
    }
    const token = tokenFile === undefined ? undefined : readTokenFile('--token-file', tokenFile);
    return await connect({ url, ...(token === undefined ? {} : { token }), clientName: 'exec-server run', onState });
  } catch (error) {
    throw isClientError(error) ? new CommandError(error.message) : error;
  }
}

/** Says on stderr when the connection was lost and when it is back. */
function stateLine(): (state: ClientState) => void {
  let lostAt: number | undefined;
  return (state) => {
    if (state === 'recovering' && lostAt === undefined) {
      lostAt = performance.now();
      say('the connection was lost; the command goes on, reconnecting');
    } else if (state === 'ready' && lostAt !== undefined) {
      say(`reconnected after ${Math.round(performance.now() - lostAt)} ms`);
      lostAt = undefined;
    }
  };
}

const say = (text: string): void => void process.stderr.write(`exec-server: ${text}\n`);

async function start(client: Client, options: RunOptions): Promise<ProcessHandle> {
  const cwd = options.cwd !== undefined && options.url === undefined ? resolve(options.cwd) : options.cwd;
  try {
    return await client.start({
      argv: [...options.command],
      env: options.env,
      stdin: 'pipe',
      ...(cwd === undefined ? {} : { cwd }),
    });
  } catch (error) {
    if (!isClientError(error)) throw error;
    const program = options.command[0] ?? '';
    switch (error.data.reason) {
      case 'programNotFound':
      case 'interpreterNotFound':
        throw new CommandError(`${program}: not found`, NOT_FOUND);
      case 'notExecutable':
        throw new CommandError(`${program}: not executable`, NOT_EXECUTABLE);
      default:
        throw new CommandError(`cannot start ${program}: ${error.message}`);
    }
  }
}

async function follow(handle: ProcessHandle): Promise<number> {
  let readerGone = false;
  const onReaderGone = (): void => {
    if (readerGone) return;
    readerGone = true;
    // The command is of no use without its reader; a failure shows in the events.
    handle.terminate().catch(() => undefined);
  };
  for (const stream of [process.stdout, process.stderr]) stream.on('error', onReaderGone);
  const stopForwarding = forwardSignals(handle);
  void forwardInput(handle, process.stdin);
  let exitCode: number = ExitCode.failure;
  let lost = false;
  try {
    for await (const event of handle) {
      if (event.type === 'output') {
        if (!readerGone) await pass(event.stream === 'stderr' ? process.stderr : process.stdout, event.bytes);
      } else if (event.type === 'gap') {
        lost = true;
        say(
          `${event.bytes ?? 'some'} bytes of output are lost: events ${event.fromSeq} to ${event.throughSeq} are no longer kept by the server`,
        );
      } else if (event.type === 'exited') {
        exitCode = event.exitCode;
      }
    }
  } catch (error) {
    if (!isClientError(error)) throw error;
    throw new CommandError(error.message);
  } finally {
    stopForwarding();
  }
  if (readerGone) return READER_GONE;
  return lost && exitCode === ExitCode.ok ? ExitCode.failure : exitCode;
}

/** Waits while the reader of our stream is behind, which holds back the command. */
async function pass(stream: Writable, bytes: Uint8Array): Promise<void> {
  if (stream.write(bytes) || stream.destroyed) return;
  await Promise.race([once(stream, 'drain'), once(stream, 'close')]).catch(() => undefined);
}

async function forwardInput(handle: ProcessHandle, input: Readable): Promise<void> {
  try {
    for await (const chunk of input) {
      // Nothing sets an encoding on stdin, so its chunks are bytes.
      await handle.write(chunk as Uint8Array);
    }
    await handle.end();
  } catch {
    // The command closed its stdin, ended, or is lost; its events tell the rest.
  }
}

function forwardSignals(handle: ProcessHandle): () => void {
  const listeners = FORWARDED.map((signal) => {
    const listener = (): void => void handle.signal(signal).catch(() => undefined);
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}
