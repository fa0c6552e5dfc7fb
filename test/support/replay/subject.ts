/** The server program under a replay, in a fresh folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { serverProgram } from '../links.js';
import { Tag } from '../tagged.js';
import { until } from '../until.js';
import { type HttpFixture, startHttpFixture } from './httpFixture.js';
import { fill } from './placeholders.js';
import type { Header } from './transcript.js';

export type ReplayWire = 'websocket' | 'stdio';

export class Subject implements AsyncDisposable {
  /** What the placeholders of the header stand for. */
  readonly bound: ReadonlyMap<string, string>;
  readonly child: ChildProcess;
  /** Undefined over stdio. */
  url: string | undefined;
  readonly #surroundings: Surroundings;
  readonly #tag = new Tag('REPLAY');

  private constructor(header: Header, wire: ReplayWire, surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.bound = surroundings.bound;
    const listen = wire === 'stdio' ? 'stdio' : 'ws://127.0.0.1:0';
    const args = (header.serverArgs ?? []).map((arg) => fill(arg, this.bound));
    this.child = spawn(process.execPath, [serverProgram, '--listen', listen, ...args], {
      cwd: surroundings.folder,
      env: { ...process.env, ...header.serverEnv, ...this.#tag.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  }

  static async start(header: Header, wire: ReplayWire): Promise<Subject> {
    const subject = new Subject(header, wire, await surround(header));
    try {
      if (wire === 'websocket') subject.url = await firstLine(subject.child);
      else subject.child.stderr?.resume();
      return subject;
    } catch (error) {
      await subject[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Undefined while it runs. */
  get exit(): number | string | undefined {
    return this.child.exitCode ?? this.child.signalCode ?? undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGTERM');
    await until(() => this.exit !== undefined, 'the server to end').finally(() => this.#tag.killAll());
    await this.#surroundings.fixture?.close();
    await rm(this.#surroundings.base, { recursive: true, force: true });
  }
}

interface Surroundings {
  readonly base: string;
  /** The working directory, empty but for the files of the header. */
  readonly folder: string;
  readonly fixture: HttpFixture | undefined;
  readonly bound: ReadonlyMap<string, string>;
}

async function surround(header: Header): Promise<Surroundings> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'replay-')));
  const folder = join(base, 'work');
  await mkdir(folder);
  const bound = new Map([['TMP', folder]]);
  for (const [path, content] of Object.entries(header.files ?? {})) {
    const file = fill(path, bound);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o600 });
  }
  const fixture = header.httpFixture === undefined ? undefined : await startHttpFixture();
  if (fixture !== undefined) bound.set('HTTP', fixture.url).set('DEAD', `127.0.0.1:${await closedPort()}`);
  return { base, folder, fixture, bound };
}

async function firstLine({ stdout, stderr }: ChildProcess): Promise<string> {
  if (stdout === null || stderr === null) throw new Error('the server has no stdout and stderr');
  for await (const line of createInterface(stdout)) {
    // Nothing may fill up.
    stdout.resume();
    stderr.resume();
    return line;
  }
  const said = Buffer.concat((await stderr.toArray()) as Buffer[]).toString();
  throw new Error(`the server ended without an address: ${said}`);
}

/** A port that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}
