/** A process on a terminal as a test sees it: its text so far, its exit, its end. Closed by `closeScreens`. */
import type { ChildExit } from '@exec-server/server';
import { type PtyChild, type PtyRequest, spawnPty } from '../../packages/server/src/host/pty/ptyChild.js';

export const PATH = '/usr/local/bin:/usr/bin:/bin';

interface Wanted {
  readonly part: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

const screens = new Set<Screen>();

export class Screen {
  readonly child: PtyChild;
  readonly exit: Promise<ChildExit>;
  readonly ended: Promise<void>;
  text = '';
  length = 0;
  #ends = 0;
  #resolveEnded: () => void = () => undefined;
  #wanted: Wanted[] = [];
  #onBytes: ((screen: Screen) => void) | undefined;

  constructor(child: PtyChild) {
    screens.add(this);
    this.child = child;
    this.exit = new Promise((resolve) => child.onExit(resolve));
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Starts delivery; `onBytes` is called after each chunk. */
  read(onBytes?: (screen: Screen) => void): this {
    this.#onBytes = onBytes;
    this.output.start({ bytes: (bytes) => this.#add(bytes), ended: () => this.#end() });
    return this;
  }

  get output() {
    const [output] = this.child.outputs;
    if (output === undefined) throw new Error('a terminal has one output');
    return output;
  }

  /** Resolves once the text holds `part`. */
  says(part: string): Promise<void> {
    if (this.text.includes(part)) return Promise.resolve();
    return new Promise((resolve, reject) => this.#wanted.push({ part, resolve, reject }));
  }

  type(text: string): Promise<Error | undefined> {
    return new Promise((resolve) => this.child.stdin.write(Buffer.from(text), resolve));
  }

  /** The whole text, once exit and end have come. */
  async finish(): Promise<{ text: string } & ChildExit> {
    const [exit] = await Promise.all([this.exit, this.ended]);
    screens.delete(this);
    return { text: this.text, ...exit };
  }

  #end(): void {
    this.#ends += 1;
    if (this.#ends > 1) throw new Error('ended was called twice');
    for (const { part, reject } of this.#wanted) reject(new Error(`no ${part} in ${this.text}`));
    this.#resolveEnded();
  }

  #add(bytes: Uint8Array): void {
    this.length += bytes.length;
    // Enough for what a test looks for, however much a program writes.
    if (this.text.length < 64 * 1024) this.text += Buffer.from(bytes).toString('latin1');
    this.#wanted = this.#wanted.filter(({ part, resolve }) => {
      if (!this.text.includes(part)) return true;
      resolve();
      return false;
    });
    this.#onBytes?.(this);
  }
}

export function startScreen(argv: readonly string[], changes: Partial<PtyRequest> = {}): Promise<Screen> {
  return spawnPty({ argv, cwd: '/', env: { PATH }, stdin: 'pipe', ...changes }).then((child) => new Screen(child));
}

export function shScreen(script: string, changes: Partial<PtyRequest> = {}): Promise<Screen> {
  return startScreen(['/bin/sh', '-c', script], changes);
}

/** Kills what a test left running, and waits until it was reaped. */
export async function closeScreens(): Promise<void> {
  for (const screen of screens) {
    screen.child.signalGroup('SIGKILL');
    screen.output.destroy();
    await screen.exit;
  }
  screens.clear();
}
