/** A temporary folder of one test file, and what a test does in it. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export class Scratch {
  readonly root: string;

  /** `above`: where it is made. Default: the temporary folder of the host. */
  constructor(above = tmpdir()) {
    this.root = mkdtempSync(join(above, 'exec-server-test-'));
  }

  path(...names: string[]): string {
    return join(this.root, ...names);
  }

  file(name: string, content: string | Uint8Array = '', mode = 0o644): string {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { mode });
    return path;
  }

  folder(name: string): string {
    mkdirSync(this.path(name), { recursive: true });
    return this.path(name);
  }

  link(name: string, target: string): string {
    symlinkSync(target, this.path(name));
    return this.path(name);
  }

  text(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  /** Of the path itself; a link is not followed. */
  stats(name: string): Stats {
    return lstatSync(this.path(name));
  }

  /** Permission bits. */
  mode(name: string): number {
    return this.stats(name).mode & 0o7777;
  }

  /** Everything below, sorted; links are not followed. */
  names(name = '.'): string[] {
    const below = (folder: string, prefix: string): string[] =>
      readdirSync(folder, { withFileTypes: true }).flatMap((entry) => [
        `${prefix}${entry.name}`,
        ...(entry.isDirectory() ? below(join(folder, entry.name), `${prefix}${entry.name}/`) : []),
      ]);
    return below(this.path(name), '').sort();
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
