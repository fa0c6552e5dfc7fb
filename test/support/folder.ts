/** A temporary folder of one test. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Folder implements AsyncDisposable {
  /** Without symbolic links. */
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<Folder> {
    return new Folder(await realpath(await mkdtemp(join(tmpdir(), 'files-'))));
  }

  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
