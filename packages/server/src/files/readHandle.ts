/** A file that `fs/open` opened for reading: blocks of the very file, whatever becomes of its path. */
import type { BigIntStats } from 'node:fs';
import { type ParamsOf, type ResultOf, withPayload } from '@exec-server/protocol';
import type { BytePath } from '../paths.js';
import { identityOf, permissionsOf, versionOf } from './detail.js';
import { errnoError, onPath } from './errno.js';
import { readBytes, readOnce } from './fileBytes.js';
import type { OpenHandle } from './fileHandles.js';
import { openForReading, type OpenedFile, readAccess } from './openRead.js';
import type { ReadableFile } from './readableFile.js';
import { checkReadOffset, readRange } from './readFile.js';

type Block = ResultOf<'fs/readBlock'>;

export interface OpenedHandle {
  readonly handle: OpenHandle;
  readonly result: ResultOf<'fs/open'>;
}

export async function openReadHandle(path: BytePath, params: ParamsOf<'fs/open'>): Promise<OpenedHandle> {
  const opened = await openForReading(path, readAccess(params));
  const detailed = params.detail ?? false;
  return {
    handle: new ReadHandle(path, opened, detailed),
    result: { handleId: params.handleId, ...(detailed ? detailOfOpen(opened.stats) : {}) },
  };
}

function detailOfOpen(stats: BigIntStats): Omit<ResultOf<'fs/open'>, 'handleId'> {
  return {
    identity: identityOf(stats),
    version: versionOf(stats),
    size: Number(stats.size),
    mode: permissionsOf(stats),
  };
}

class ReadHandle implements OpenHandle {
  readonly #path: BytePath;
  readonly #file: ReadableFile;
  readonly #stats: BigIntStats;
  readonly #detailed: boolean;
  /** Of a FIFO or device: bytes given out. */
  #streamed = 0;

  constructor(path: BytePath, { file, stats }: OpenedFile, detailed: boolean) {
    this.#path = path;
    this.#file = file;
    this.#stats = stats;
    this.#detailed = detailed;
  }

  read(offset: number, len: number): Promise<Block> {
    return onPath(this.#path, async () => {
      checkReadOffset(offset);
      if (!this.#stats.isFile() && !this.#stats.isBlockDevice()) return this.#readStream(offset, len);
      if (this.#detailed) {
        const { dataBase64, stop, size } = await readRange(this.#file, { offset, most: len });
        return withPayload({ chunk: dataBase64, eof: stop === 'end', size }, 'chunk');
      }
      const { dataBase64, stop } = await readBytes(this.#file, { from: offset, most: len });
      return withPayload({ chunk: dataBase64, eof: stop === 'end' }, 'chunk');
    });
  }

  async close(): Promise<ResultOf<'fs/close'>> {
    await this.#file.close();
    return {};
  }

  async drop(): Promise<void> {
    // What cannot be closed is of no more use to anybody.
    await this.#file.close().catch(() => undefined);
  }

  /** What is there at once; the data of a stream has no positions, so the offset can only be that of its next byte. */
  async #readStream(offset: number, len: number): Promise<Block> {
    if (offset !== this.#streamed) throw errnoError('ESPIPE');
    const { dataBase64, bytes, stop } = await readOnce(this.#file, len);
    this.#streamed += bytes;
    return withPayload({ chunk: dataBase64, eof: stop === 'end' }, 'chunk');
  }
}
