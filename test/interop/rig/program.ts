/** One program of the rig: started with a bare environment, ended for certain. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

const STOP_WITHIN_MS = 3_000;
const LAST_WORDS_CHARS = 4_000;

export interface ProgramOptions {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export class Program {
  readonly lines: string[] = [];
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  readonly #child: ChildProcess;
  readonly #firstLine: Promise<string>;
  #complaints = '';

  constructor({ argv: [command, ...args], cwd, env }: ProgramOptions) {
    const child = spawn(command, args, {
      cwd,
      env: { ...bareEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-LAST_WORDS_CHARS);
    });
    this.#firstLine = this.#read(child.stdout);
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the program did not start');
    return this.#child.pid;
  }

  /** The end of what it wrote on standard error. */
  get complaints(): string {
    return this.#complaints;
  }

  /** Rejects when it ends without one. */
  async firstLine(): Promise<string> {
    const early = this.ended.then((how): never => {
      throw new Error(`the program ended (${how}) without a word: ${this.#complaints}`);
    });
    return Promise.race([this.#firstLine, early]);
  }

  interrupt(): void {
    this.#child.kill('SIGINT');
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_WITHIN_MS);
    // A descendant that holds the other end must not keep the close from coming.
    this.#child.once('exit', () => this.#child.stdout?.destroy());
    this.#child.once('exit', () => this.#child.stderr?.destroy());
    await this.ended;
    clearTimeout(timer);
  }

  async #read(output: Readable): Promise<string> {
    return new Promise((resolve) => {
      createInterface(output).on('line', (line) => {
        this.lines.push(line);
        resolve(line);
      });
    });
  }
}

/** The same on every machine: neither proxies nor keys of the user reach a program. */
function bareEnvironment(): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LANG: 'C.UTF-8', SHELL: '/bin/bash' };
}
