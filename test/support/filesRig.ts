/** A server, a raw peer and a temporary folder, for what the file methods do. */
import { existsSync } from 'node:fs';
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import type { Raw, RawMessage } from './raw.js';
import { type RawLink, RawServed } from './rawServed.js';

export class FilesRig implements AsyncDisposable {
  readonly served: RawServed;
  readonly raw: Raw;
  /** Without links in it. */
  readonly folder: string;

  private constructor(served: RawServed, raw: Raw, folder: string) {
    this.served = served;
    this.raw = raw;
    this.folder = folder;
  }

  static async open(link: RawLink = 'memory', under = tmpdir()): Promise<FilesRig> {
    const served = new RawServed(link);
    const folder = await realpath(await mkdtemp(join(under, 'files-')));
    return new FilesRig(served, await served.ready(), folder);
  }

  at(name: string): string {
    return join(this.folder, name);
  }

  result(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    return this.raw.result(method, params);
  }

  async error(method: string, params: object): Promise<NonNullable<RawMessage['error']>> {
    const { error } = await this.raw.call(method, params);
    if (error === undefined) throw new Error(`${method} was not refused`);
    return error;
  }

  /** The bytes of a file as the server reads it, as text. */
  async text(name: string, params: object = {}): Promise<string> {
    const { dataBase64 } = await this.result('fs/readFile', { path: this.at(name), ...params });
    return Buffer.from(String(dataBase64), 'base64').toString('utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.served.expectClean();
    // Node is slow at large folders, and cannot remove what has too long a path.
    await execa('rm', ['-rf', this.folder]);
    expect(this.raw.transport.queuedBytes).toBe(0);
  }
}

/** For folders of many files: a disk takes long to make them. */
export const inMemory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
