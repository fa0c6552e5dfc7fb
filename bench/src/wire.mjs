// @ts-check
// A raw client of the base protocol, the same for both servers: no library client, no extensions announced.
// It shares the machine's cores with the server it measures, so it does as little as it can per message.

import { performance } from 'node:perf_hooks';
import { WebSocket } from 'ws';

/**
 * @typedef {{ id?: number | string, method?: string, params?: Record<string, unknown>, result?: unknown,
 *   error?: { code: number, message: string } }} Message
 * @typedef {{ resolve: (value: unknown) => void, reject: (reason: Error) => void }} Waiter
 */

const METHOD = Buffer.from('"process/output"');
const CHUNK = Buffer.from('"chunk":"');
const QUOTE = 0x22;
const EQUALS = 0x3d;
const LINE_FEED = 0x0a;
/** Where method and the members before `chunk` are looked for; a message that is laid out otherwise is parsed. */
const HEAD_BYTES = 256;

/**
 * Decoded size of the payload of a `process/output` message, from the length of its base64; -1 for anything else.
 * @param {Buffer} message
 */
function payloadBytes(message) {
  const head = message.subarray(0, HEAD_BYTES);
  if (!head.includes(METHOD)) return -1;
  const at = head.indexOf(CHUNK);
  if (at < 0) return -1;
  const start = at + CHUNK.length;
  const end = message.indexOf(QUOTE, start);
  return end < 0 ? -1 : decodedBytes(end - start, message[end - 1] === EQUALS, message[end - 2] === EQUALS);
}

/**
 * @param {number} length of the base64 text
 * @param {boolean} lastPads
 * @param {boolean} lastButOnePads
 */
function decodedBytes(length, lastPads, lastButOnePads) {
  if (length === 0) return 0;
  return (length / 4) * 3 - (lastPads ? 1 : 0) - (lastButOnePads ? 1 : 0);
}

const ID_FIRST = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d+),"result":/;
const ID_LAST = /"id":(\d+)\}$/;
const PAYLOADS = [Buffer.from('"dataBase64":"'), CHUNK];

/**
 * The id of an answer with file data and the size of the data, read off the message; undefined for anything else.
 * @param {Buffer} message
 * @returns {{ id: number, bytes: number } | undefined}
 */
function dataAnswer(message) {
  const head = message.subarray(0, HEAD_BYTES);
  const text = head.toString('latin1');
  const id = ID_FIRST.exec(text)?.[1] ?? ID_LAST.exec(message.subarray(-HEAD_BYTES).toString('latin1'))?.[1];
  const payload = PAYLOADS.find((name) => head.includes(name));
  if (id === undefined || payload === undefined) return undefined;
  const start = head.indexOf(payload) + payload.length;
  const end = message.indexOf(QUOTE, start);
  if (end < 0) return undefined;
  return { id: Number(id), bytes: decodedBytes(end - start, message[end - 1] === EQUALS, message[end - 2] === EQUALS) };
}

/** What has been pushed about one process. Events may arrive out of order: `closed` alone does not mean that all came. */
class Watch {
  events = 0;
  bytes = 0;
  closedSeq = Number.POSITIVE_INFINITY;
  /** @type {number | undefined} */
  exitCode;
  /** Called with the base64 text of each chunk. @type {((base64: string) => void) | undefined} */
  onChunk;
  /** Set to have output counted without parsing. */
  countOnly = false;
  /** Resolves with the arrival time of `process/closed`. @type {Resolvers<number>} */
  closed = withResolvers();
  /** Resolves with the time at which every event up to `closed` has arrived. @type {Resolvers<number>} */
  complete = withResolvers();

  /** @param {number} bytes */
  countOutput(bytes) {
    this.bytes += bytes;
    this.countEvent();
  }

  countEvent() {
    this.events += 1;
    if (this.events >= this.closedSeq) this.complete.resolve(performance.now());
  }
}

/**
 * @template T
 * @typedef {{ promise: Promise<T>, resolve: (value: T) => void, reject: (reason: Error) => void }} Resolvers
 */

/**
 * @template T
 * @returns {Resolvers<T>}
 */
export function withResolvers() {
  /** @type {(value: T) => void} */
  let resolve = () => undefined;
  /** @type {(reason: Error) => void} */
  let reject = () => undefined;
  /** @type {Promise<T>} */
  const promise = new Promise((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // A failed connection rejects every waiter; one that nobody awaits any more must not end the program.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/** One connection. Every wait on it ends when `fail` is called: that is how timeouts and dead servers reach a measure. */
export class Wire {
  #lastId = 0;
  #lastProcess = 0;
  /** @type {Map<number | string, Waiter>} */
  #pending = new Map();
  /** Requests of which only the size of the data in their answer is asked for. @type {Map<number, Resolvers<number>>} */
  #sized = new Map();
  /** @type {Map<string, Watch>} */
  #watches = new Map();
  /** The process whose output is counted without parsing. @type {Watch | undefined} */
  #counted;
  /** @type {Error | undefined} */
  #failure;
  #send;
  #close;

  /**
   * @param {(text: string) => void} send
   * @param {() => void} close
   */
  constructor(send, close) {
    this.#send = send;
    this.#close = close;
  }

  /** Introduces the client; every connection begins with it. */
  async hello() {
    await this.call('initialize', { clientName: 'exec-server-bench' });
    this.#send('{"method":"initialized","params":{}}');
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} [params]
   * @returns {Promise<unknown>}
   */
  call(method, params = {}) {
    if (this.#failure) return Promise.reject(this.#failure);
    const id = ++this.#lastId;
    /** @type {Resolvers<unknown>} */
    const waiter = withResolvers();
    this.#pending.set(id, waiter);
    this.#send(JSON.stringify({ id, method, params }));
    return waiter.promise;
  }

  /**
   * The number of bytes in the answer to a read, which is not parsed.
   * @param {string} method
   * @param {Record<string, unknown>} params
   * @returns {Promise<number>}
   */
  async callForBytes(method, params) {
    const answer = this.call(method, params);
    const id = this.#lastId;
    /** @type {Resolvers<number>} */
    const size = withResolvers();
    this.#sized.set(id, size);
    try {
      return await Promise.race([
        size.promise,
        answer.then((result) => {
          throw new Error(`${method} answered without data: ${JSON.stringify(result).slice(0, 200)}`);
        }),
      ]);
    } finally {
      this.#sized.delete(id);
    }
  }

  /** A process id that this connection has not used. */
  newProcessId() {
    return `bench-${++this.#lastProcess}`;
  }

  /**
   * Follows a process; called before its start is sent, since pushes may come ahead of the reply.
   * @param {string} processId
   * @param {{ countOnly?: boolean }} [options]
   */
  watch(processId, options = {}) {
    const watch = new Watch();
    watch.countOnly = options.countOnly ?? false;
    if (watch.countOnly) this.#counted = watch;
    if (this.#failure) {
      watch.closed.reject(this.#failure);
      watch.complete.reject(this.#failure);
    }
    this.#watches.set(processId, watch);
    return watch;
  }

  /** @param {string} processId */
  unwatch(processId) {
    if (this.#watches.get(processId) === this.#counted) this.#counted = undefined;
    this.#watches.delete(processId);
  }

  /**
   * One message as it came, without the line feed.
   * @param {Buffer} bytes
   */
  receive(bytes) {
    if (this.#counted) {
      const size = payloadBytes(bytes);
      if (size >= 0) {
        this.#counted.countOutput(size);
        return;
      }
    }
    if (bytes.length === 0) return;
    if (this.#sized.size > 0) {
      const answer = dataAnswer(bytes);
      const size = answer && this.#sized.get(answer.id);
      if (answer && size) {
        this.#pending.delete(answer.id);
        size.resolve(answer.bytes);
        return;
      }
    }
    /** @type {Message} */
    let message;
    try {
      // oxlint-disable-next-line typescript/no-unsafe-assignment -- the servers are trusted here; checks would cost time
      message = JSON.parse(bytes.toString());
    } catch {
      this.fail(new Error(`the server sent what is no JSON: ${bytes.toString('utf8', 0, 80)}`));
      return;
    }
    if (message.method !== undefined) this.#pushed(message.method, message.params ?? {});
    else this.#answered(message);
  }

  /** @param {Message} message */
  #answered(message) {
    const waiter = message.id === undefined ? undefined : this.#pending.get(message.id);
    if (message.id === undefined || !waiter) {
      this.fail(new Error(`an answer to no request: ${JSON.stringify(message).slice(0, 200)}`));
      return;
    }
    this.#pending.delete(message.id);
    if (message.error) waiter.reject(new Error(`${message.error.message} (${message.error.code})`));
    else waiter.resolve(message.result);
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  #pushed(method, params) {
    const watch = this.#watches.get(String(params['processId']));
    if (!watch) return;
    if (method === 'process/output') {
      const chunk = String(params['chunk']);
      watch.countOutput(decodedBytes(chunk.length, chunk.endsWith('='), chunk.endsWith('==')));
      watch.onChunk?.(chunk);
    } else if (method === 'process/exited') {
      watch.exitCode = Number(params['exitCode']);
      watch.countEvent();
    } else if (method === 'process/closed') {
      watch.closedSeq = Number(params['seq']);
      watch.closed.resolve(performance.now());
      watch.countEvent();
    }
  }

  /**
   * Ends the connection and every wait on it; the first reason stays.
   * @param {Error} reason
   */
  fail(reason) {
    if (this.#failure) return;
    this.#failure = reason;
    for (const waiter of this.#pending.values()) waiter.reject(reason);
    this.#pending.clear();
    for (const watch of this.#watches.values()) {
      watch.closed.reject(reason);
      watch.complete.reject(reason);
    }
    this.#close();
  }
}

/**
 * @param {string} url
 * @param {number} timeoutMs for the handshake
 * @returns {Promise<Wire>}
 */
export async function openWebSocket(url, timeoutMs) {
  const socket = new WebSocket(url, {
    perMessageDeflate: false,
    skipUTF8Validation: true,
    handshakeTimeout: timeoutMs,
  });
  const wire = new Wire(
    (text) => socket.send(text),
    () => socket.terminate(),
  );
  // One Buffer per message: that is what the default `binaryType` says.
  socket.on('message', (data) => wire.receive(Buffer.isBuffer(data) ? data : Buffer.alloc(0)));
  /** @type {Resolvers<void>} */
  const opened = withResolvers();
  socket.once('open', () => opened.resolve());
  socket.on('error', (error) => {
    opened.reject(error);
    wire.fail(error);
  });
  socket.on('close', (code) => wire.fail(new Error(`the server closed the connection (${code})`)));
  await opened.promise;
  return wire;
}

/**
 * @param {import('node:stream').Writable} input of the server
 * @param {import('node:stream').Readable} output of the server
 * @returns {Wire}
 */
export function openLines(input, output) {
  const wire = new Wire(
    (text) => input.write(`${text}\n`),
    () => input.end(),
  );
  /** Pieces of a line whose end has not arrived. @type {Buffer[]} */
  let pieces = [];
  output.on('data', (/** @type {Buffer} */ bytes) => {
    let from = 0;
    for (;;) {
      const at = bytes.indexOf(LINE_FEED, from);
      if (at < 0) break;
      const piece = bytes.subarray(from, at);
      from = at + 1;
      if (pieces.length === 0) {
        wire.receive(piece);
      } else {
        const line = Buffer.concat([...pieces, piece]);
        pieces = [];
        wire.receive(line);
      }
    }
    if (from < bytes.length) pieces.push(bytes.subarray(from));
  });
  output.on('end', () => wire.fail(new Error('the server closed its output')));
  output.on('error', (error) => wire.fail(error));
  input.on('error', (error) => wire.fail(error));
  return wire;
}
