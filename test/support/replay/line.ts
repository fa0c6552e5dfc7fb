/** One connection of a replay: sends texts as they are, keeps what came and was not looked for yet. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';
import type { JsonObject } from './transcript.js';

interface SendHow {
  readonly binary: boolean;
  /** Without the end of the line. */
  readonly partial: boolean;
}

export interface ReplayLine {
  send(text: string, how: SendHow): void;
  /** Cuts the connection. */
  abort(): void;
  /** Ends it with a close frame, or with the end of the input. */
  end(): void;
  /** The close code once it is closed; 1006 without a close frame. */
  readonly closeCode: number | undefined;
}

export type Receive = (message: JsonObject) => void;

export async function dialWebSocket(url: string, receive: Receive): Promise<ReplayLine> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  let closeCode: number | undefined;
  socket.on('message', (data: Buffer) => receive(JSON.parse(data.toString('utf8')) as JsonObject));
  socket.on('close', (code) => {
    closeCode = code;
  });
  await once(socket, 'open');
  // The close that follows tells as much.
  socket.on('error', () => {});
  return {
    send: (text, { binary }) => socket.send(binary ? Buffer.from(text) : text),
    abort: () => socket.terminate(),
    end: () => socket.close(),
    get closeCode() {
      return closeCode;
    },
  };
}

export function speakOverStdio({ stdin, stdout }: ChildProcess, receive: Receive): ReplayLine {
  if (stdin === null || stdout === null) throw new Error('the server has no stdin and stdout');
  // A server that has ended is found by its exit.
  stdin.on('error', () => {});
  createInterface(stdout).on('line', (line) => receive(JSON.parse(line) as JsonObject));
  return {
    send: (text, { partial }) => void stdin.write(partial ? text : `${text}\n`),
    abort: () => void stdin.destroy(),
    end: () => void stdin.end(),
    closeCode: undefined,
  };
}
