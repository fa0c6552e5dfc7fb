/** Lets a child wait for the test without a connection to it: a named pipe it reads a line from. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

export class Gate implements AsyncDisposable {
  /** For `read go < path` in the child. */
  readonly path: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, 'gate');
  }

  static async make(): Promise<Gate> {
    const gate = new Gate(await mkdtemp(join(tmpdir(), 'gate-')));
    await execa('mkfifo', [gate.path]);
    return gate;
  }

  /** Lets one child through; resolves when it waits no more. */
  async open(): Promise<void> {
    await writeFile(this.path, 'go\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A command line that waits at the gate first. */
export function behind(gate: Gate, argv: readonly string[]): string[] {
  return ['sh', '-c', 'read go < "$0"; exec "$@"', gate.path, ...argv];
}
