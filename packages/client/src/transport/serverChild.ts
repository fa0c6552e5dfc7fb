/** A server program as a child: its process group, its end, and the tail of its stderr. */
import { types } from 'node:util';
import { execa } from 'execa';
import type { ClientErrorData } from '../errors.js';
import type { ChildOptions } from './childOptions.js';

/** How long a server may take to end after its stdin has ended: it answers what it has read and ends its processes. */
const EOF_GRACE_MS = 5_000;
/** How long it may take after SIGTERM. */
const TERM_GRACE_MS = 1_000;
/** How long streams may stay open after the exit, or the exit may come after them. */
const SETTLE_MS = 1_000;
const STDERR_TAIL_BYTES = 4 * 1024;

const onWindows = process.platform === 'win32';

/** In a process group of its own: what the program leaves behind can be ended with it. */
function launch({ command: [program, ...args], env, cwd }: ChildOptions) {
  return execa(program, args, {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    buffer: false,
    reject: false,
    cleanup: false,
    detached: !onWindows,
    env: { ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
}

type Subprocess = ReturnType<typeof launch>;

/** Groups to kill when this process exits; a crash of it is seen by the server as the end of its stdin. */
const running = new Set<ServerChild>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class ServerChild {
  readonly label: string;
  readonly #subprocess: Subprocess;
  readonly #exited: Promise<void>;
  readonly #gone: Promise<void>;
  #stderr: Uint8Array = new Uint8Array();
  #exit: { readonly code: number | null; readonly signal: string | null } | undefined;
  #ending = false;

  static async spawn(options: ChildOptions): Promise<ServerChild> {
    const subprocess = launch(options);
    // Unread streams that nobody paused are drained into nothing.
    subprocess.stdout.pause();
    if (subprocess.pid === undefined) {
      const result = await subprocess;
      throw new Error(result.originalMessage ?? result.shortMessage ?? 'the program did not start');
    }
    return new ServerChild(options.command.join(' '), subprocess);
  }

  private constructor(label: string, subprocess: Subprocess) {
    this.label = label;
    this.#subprocess = subprocess;
    running.add(this);
    subprocess.stderr.on('data', (chunk: Uint8Array) => this.#keepStderr(chunk));
    this.#exited = new Promise((resolve) => {
      subprocess.once('exit', (code, signal) => {
        this.#exit = { code, signal };
        // Whoever is left in the group would hold the streams open and outlive the client.
        this.kill('SIGKILL');
        running.delete(this);
        resolve();
      });
    });
    // Resolves in any case, by `reject: false`, when the streams have ended too.
    this.#gone = Promise.all([
      this.#exited,
      Promise.race([subprocess, this.#exited.then(() => delay(SETTLE_MS))]),
    ]).then(() => undefined);
  }

  get stdin(): Subprocess['stdin'] {
    return this.#subprocess.stdin;
  }

  get stdout(): Subprocess['stdout'] {
    return this.#subprocess.stdout;
  }

  /** Resolves when the program has ended and its streams with it. */
  get gone(): Promise<void> {
    return this.#gone;
  }

  /** Waits a moment for the exit, which tells more than the end of a stream does. */
  async settle(): Promise<void> {
    await Promise.race([this.#gone, delay(SETTLE_MS)]);
  }

  /** Exit code and tail of stderr, as far as known. */
  report(): ClientErrorData {
    const stderr = this.#stderrText();
    return { ...(this.#exit === undefined ? {} : { exitCode: this.#exit.code }), ...(stderr === '' ? {} : { stderr }) };
  }

  /** The same in words. */
  describe(): string {
    const stderr = this.#stderrText();
    const tail = stderr === '' ? '' : `; its stderr ends: ${stderr}`;
    if (this.#exit === undefined) return `it closed its output and has not exited${tail}`;
    const { code, signal } = this.#exit;
    return `${signal === null ? `exit code ${code}` : `killed by ${signal}`}${tail}`;
  }

  /** Ends the program if it has not ended by itself: after `graceMs` by SIGTERM, then by SIGKILL, each to the whole group. */
  end(how: 'afterEof' | 'now'): void {
    if (how === 'now') this.kill('SIGTERM');
    if (this.#ending && how === 'afterEof') return;
    this.#ending = true;
    void this.#force(how === 'now' ? 0 : EOF_GRACE_MS);
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#subprocess;
    if (pid === undefined) return;
    if (onWindows) {
      if (this.#exit === undefined) this.#subprocess.kill(signal);
      return;
    }
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // ESRCH: the group is empty. EPERM: only zombies, or processes of another user, are left in it.
      if (!isErrno(error, 'ESRCH') && !isErrno(error, 'EPERM')) throw error;
    }
  }

  async #force(graceMs: number): Promise<void> {
    if (graceMs > 0) {
      if (await this.#exitedWithin(graceMs)) return;
      this.kill('SIGTERM');
    }
    if (!(await this.#exitedWithin(TERM_GRACE_MS))) this.kill('SIGKILL');
  }

  async #exitedWithin(ms: number): Promise<boolean> {
    await Promise.race([this.#exited, delay(ms)]);
    return this.#exit !== undefined;
  }

  #keepStderr(chunk: Uint8Array): void {
    const all = new Uint8Array(this.#stderr.byteLength + chunk.byteLength);
    all.set(this.#stderr);
    all.set(chunk, this.#stderr.byteLength);
    this.#stderr = all.subarray(-STDERR_TAIL_BYTES);
  }

  #stderrText(): string {
    return new TextDecoder().decode(this.#stderr).trim();
  }
}

function isErrno(error: unknown, code: string): boolean {
  // Not `instanceof`: under Jest the errors of the host are those of another realm.
  return types.isNativeError(error) && 'code' in error && error.code === code;
}

/** Does not keep the program alive: a running child does. */
function delay(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
