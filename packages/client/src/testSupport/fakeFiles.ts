/** A server that answers the file methods from memory, and cuts the connection at a request the test names. */
import { decodeBase64, encodeBase64, ErrorCode } from '@exec-server/protocol';
import type { Client } from '../client.js';
import { connectWith } from '../connect.js';
import { extendedReply, type FakeConnection, type FakeRequest, FakeServer } from './fakeServer.js';

type Params = Readonly<Record<string, unknown>>;

interface FakeFile {
  bytes: Uint8Array;
  identity: string;
}

interface Stage {
  readonly path: string;
  bytes: Uint8Array;
  committed: boolean;
}

interface Handle {
  readonly path: string;
  /** The file as it was opened. */
  readonly file?: FakeFile;
  readonly stage?: Stage;
  readonly archive?: boolean;
}

class Refusal extends Error {
  readonly code: number;
  readonly data: Params | undefined;
  constructor(code: number, message: string, data?: Params) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const METHODS = [
  'fs/readFile',
  'fs/writeFile',
  'fs/open',
  'fs/readBlock',
  'fs/writeBlock',
  'fs/close',
  'fs/createDirectory',
  'fs/remove',
  'fs/copy',
  'fs/move',
  'fs/getMetadata',
  'fs/canonicalize',
  'fs/readDirectory',
  'fs/walk',
  'fs/watch',
  'fs/unwatch',
  'fs/pack',
  'fs/unpack',
] as const;

export interface Cut {
  /** Which file request, from 1. */
  readonly at: number;
  /** Before the server looked at it, or after it did it; its answer is lost either way. */
  readonly when: 'before' | 'after';
}

export class FakeFiles {
  /** As an answer: none is given. */
  static readonly silent = Symbol('silent');
  readonly server = new FakeServer();
  readonly files = new Map<string, FakeFile>();
  readonly stages = new Map<string, Stage>();
  /** Everything that was changed, in order: `method path`. */
  readonly effects: string[] = [];
  readonly requests: FakeRequest[] = [];
  /** Handles that are open, over all connections that stand. */
  readonly handles = new Map<string, Handle>();
  readonly watches = new Set<string>();
  /** What a method answers in place of what this server would. */
  readonly answers = new Map<string, (params: Params) => unknown>();
  cut: Cut | undefined;
  /** Connections that were cut. */
  cuts = 0;
  connection: FakeConnection | undefined;
  readonly #reply: unknown;
  readonly #operations = new Map<string, unknown>();

  constructor(reply: unknown = extendedReply('s1')) {
    this.#reply = reply;
  }

  async connect(): Promise<Client> {
    void this.#accept();
    // No jitter: the next attempt of a recovery begins at once.
    return await connectWith({ transport: this.server.dial }, { random: () => 0 });
  }

  put(path: string, content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    this.files.set(path, { bytes, identity: `id ${this.files.size + 1} ${this.effects.length}` });
  }

  /** To be thrown by an entry of `answers`. */
  refusal(code: number, message: string, data?: Params): Error {
    return new Refusal(code, message, data);
  }

  text(path: string): string | undefined {
    const file = this.files.get(path);
    return file === undefined ? undefined : new TextDecoder().decode(file.bytes);
  }

  count(method: string): number {
    return this.requests.filter((request) => request.method === method).length;
  }

  /** Params of the requests of a method. */
  sent(method: string): Params[] {
    return this.requests.filter((request) => request.method === method).map(({ params }) => params);
  }

  async #accept(): Promise<void> {
    for (;;) {
      const connection = await this.server.accept();
      await connection.handshake(this.#reply);
      this.connection = connection;
      for (const method of METHODS) void this.#serve(connection, method);
    }
  }

  async #serve(connection: FakeConnection, method: string): Promise<void> {
    for (;;) {
      const request = await connection.next(method);
      if (this.connection !== connection) return;
      this.requests.push(request);
      const cut = this.cut?.at === this.requests.length ? this.cut : undefined;
      if (cut?.when === 'before') return this.#lose(connection);
      try {
        const result = this.answers.get(method)?.(request.params) ?? this.#do(method, request.params);
        if (cut !== undefined) return this.#lose(connection);
        if (result !== FakeFiles.silent) connection.answer(request, result);
      } catch (error) {
        if (cut !== undefined) return this.#lose(connection);
        if (!(error instanceof Refusal)) throw error;
        connection.refuse(request, error.code, error.message, error.data);
      }
    }
  }

  /** Cuts the present connection now. */
  cutNow(): void {
    if (this.connection !== undefined) this.#lose(this.connection);
  }

  #lose(connection: FakeConnection): void {
    this.cuts += 1;
    this.connection = undefined;
    this.handles.clear();
    this.watches.clear();
    connection.cut();
  }

  #do(method: string, params: Params): unknown {
    const path = String(params['path']);
    switch (method) {
      case 'fs/readFile':
        return this.#readFile(path, params);
      case 'fs/getMetadata': {
        const { bytes, identity } = this.#file(path);
        const times = { createdAtMs: 0, modifiedAtMs: 1 };
        return {
          isDirectory: false,
          isFile: true,
          isSymlink: false,
          size: bytes.length,
          ...times,
          kind: 'file',
          identity,
        };
      }
      case 'fs/canonicalize':
        return { path };
      case 'fs/open':
        return this.#open(path, params);
      case 'fs/readBlock':
        return this.#readBlock(params);
      case 'fs/writeBlock':
        return this.#writeBlock(params);
      case 'fs/close':
        return this.#close(params);
      case 'fs/watch':
        this.watches.add(String(params['watchId']));
        return { watchId: params['watchId'] };
      case 'fs/unwatch':
        this.watches.delete(String(params['watchId']));
        return {};
      case 'fs/pack':
      case 'fs/unpack':
        this.handles.set(String(params['handleId']), {
          path,
          archive: true,
          file: { bytes: new Uint8Array(0), identity: '' },
        });
        return { handleId: params['handleId'] };
      default:
        return this.#once(method, params);
    }
  }

  #once(method: string, params: Params): unknown {
    const { operationId } = params;
    const before = typeof operationId === 'string' ? this.#operations.get(operationId) : undefined;
    if (before !== undefined) return before;
    const path = String(params['path'] ?? params['sourcePath']);
    this.effects.push(`${method} ${path}`);
    if (method === 'fs/writeFile') {
      const bytes = bytesOf(params['dataBase64']);
      const old = params['append'] === true ? (this.files.get(path)?.bytes ?? new Uint8Array(0)) : new Uint8Array(0);
      this.put(path, Buffer.concat([old, bytes]));
    }
    if (typeof operationId === 'string') this.#operations.set(operationId, {});
    return {};
  }

  #readFile(path: string, { offset, maxBytes }: Params): unknown {
    const { bytes, identity } = this.#file(path);
    if (typeof maxBytes !== 'number') return { dataBase64: encodeBase64(bytes) };
    const from = Number(offset ?? 0);
    const part = bytes.subarray(from, from + maxBytes);
    const eof = part.length < maxBytes;
    return { dataBase64: encodeBase64(part), size: bytes.length, eof, identity };
  }

  #open(path: string, { handleId, mode, stage, keep, detail }: Params): unknown {
    const id = String(handleId);
    if (mode !== 'replace') {
      const file = this.#file(path);
      this.handles.set(id, { path, file });
      return { handleId, ...(detail === true ? { identity: file.identity, size: file.bytes.length } : {}) };
    }
    if (typeof stage === 'string') {
      const known = this.stages.get(stage) ?? { path, bytes: new Uint8Array(0), committed: false };
      this.stages.set(stage, known);
      if (known.committed) return { handleId, committed: {} };
      this.handles.set(id, { path, stage: known });
      return { handleId, stagedBytes: known.bytes.length };
    }
    if (keep !== true) this.put(path, '');
    this.handles.set(id, { path, file: this.#file(path) });
    return { handleId };
  }

  #readBlock({ handleId, offset, len }: Params): unknown {
    const { file } = this.#handle(handleId);
    const from = Number(offset);
    const part = (file?.bytes ?? new Uint8Array(0)).subarray(from, from + Number(len));
    return { chunk: encodeBase64(part), eof: part.length < Number(len) };
  }

  #writeBlock({ handleId, offset, chunk }: Params): unknown {
    const { file, stage } = this.#handle(handleId);
    const target = stage ?? file;
    if (target === undefined) throw new Error('a handle without a file');
    const bytes = bytesOf(chunk);
    const end = Number(offset) + bytes.length;
    if (end > target.bytes.length)
      target.bytes = Buffer.concat([target.bytes, new Uint8Array(end - target.bytes.length)]);
    target.bytes.set(bytes, Number(offset));
    return {};
  }

  #close({ handleId, commit }: Params): unknown {
    const handle = this.handles.get(String(handleId));
    this.handles.delete(String(handleId));
    if (handle?.stage === undefined) {
      if (commit === true && handle === undefined) throw unknownHandle(handleId);
      return handle?.archive === true && commit === true ? { entries: 1, bytes: handle.file?.bytes.length } : {};
    }
    const { stage, path } = handle;
    if (commit === true) {
      stage.committed = true;
      this.effects.push(`commit ${path}`);
      this.put(path, stage.bytes);
    } else {
      for (const [id, known] of this.stages) if (known === stage) this.stages.delete(id);
    }
    return {};
  }

  #file(path: string): FakeFile {
    const file = this.files.get(path);
    if (file !== undefined) return file;
    const data = { reason: 'fileNotFound', errno: 'ENOENT', path };
    throw new Refusal(ErrorCode.notFound, 'No such file or directory (os error 2)', data);
  }

  #handle(handleId: unknown): Handle {
    const handle = this.handles.get(String(handleId));
    if (handle === undefined) throw unknownHandle(handleId);
    return handle;
  }
}

function unknownHandle(handleId: unknown): Refusal {
  return new Refusal(ErrorCode.notFound, `unknown file handle \`${String(handleId)}\``, { reason: 'unknownHandle' });
}

function bytesOf(value: unknown): Uint8Array {
  const decoded = decodeBase64(String(value));
  if (!decoded.ok) throw new Error(decoded.detail);
  return decoded.bytes;
}

/** Bytes that tell where they stand. */
export function numbered(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (at ^ (at >> 8) ^ (at >> 16)) & 0xff;
  return bytes;
}
