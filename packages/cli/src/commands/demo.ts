/**
 * `exec-server demo`: the main job on real input. A long job and a filter run through a connection that is cut again and
 * again; what arrived is compared with what the job itself wrote to disk.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, connect, type ProcessHandle } from '@exec-server/client';
import { createExecServer } from '@exec-server/server';
import { type FaultProxy, startFaultProxy } from '@exec-server/testing';
import { CommandError, ExitCode } from '../exitCodes.js';
import { Progress } from '../progress.js';

export interface DemoOptions {
  /** How often the connection is cut; at least 3. */
  readonly cuts: number;
  /** Folder whose files are hashed; undefined: the installed dependencies. */
  readonly path: string | undefined;
}

/** Dials that are refused after each cut, so that it lasts long enough to be seen. */
const REFUSED_DIALS = 2;

/**
 * `$1` is the folder, `$2` the copy that the job itself keeps. It asks for a line of stdin before each batch of `$3` files:
 * on a busy machine it would be over before the last cut. The size keeps `xargs` from splitting a batch.
 */
const JOB = `exec 9<&0 </dev/null
find "$1" -type f -print0 | LC_ALL=C sort -z |
xargs -0 -s 500000 -n "$3" sh -c 'read go <&9; exec sha256sum "$@"' batch | tee "$2"`;
const MAX_BATCH_FILES = 100;
/** `$1` is the copy that the filter itself keeps. */
const FILTER = 'tr a-f A-F | tee "$1"';

export async function demo(options: DemoOptions): Promise<number> {
  const path = options.path ?? dependenciesFolder();
  const folder = await mkdtemp(join(tmpdir(), 'exec-server-demo-'));
  try {
    await using server = createExecServer();
    const { url } = await server.listen();
    await using proxy = await startFaultProxy({ target: url });
    const progress = new Progress(process.stdout);
    await using client = await connect({
      url: proxy.url,
      clientName: 'exec-server demo',
      onState: (state) => progress.state(state),
    });
    return await play(client, proxy, progress, { ...options, path, folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Stage {
  readonly cuts: number;
  readonly path: string;
  readonly folder: string;
}

async function play(client: Client, proxy: FaultProxy, progress: Progress, stage: Stage): Promise<number> {
  const files = await countFiles(client, stage.path);
  if (files < stage.cuts * 4) {
    throw new CommandError(
      `${stage.path} holds ${files} files; the demo needs at least ${stage.cuts * 4} for ${stage.cuts} cuts`,
    );
  }
  const distance = Math.floor(files / (stage.cuts + 1));
  const batch = Math.min(MAX_BATCH_FILES, Math.floor(distance / 3));
  progress.line(`server and client are up; the job: SHA-256 of ${files} files below ${stage.path}`);
  const jobCopy = join(stage.folder, 'job.txt');
  const filterCopy = join(stage.folder, 'filter.txt');
  const job = await client.start({
    argv: ['sh', '-c', JOB, 'job', stage.path, jobCopy, String(batch)],
    stdin: 'pipe',
  });
  const filter = await client.start({ argv: ['sh', '-c', FILTER, 'filter', filterCopy], stdin: 'pipe' });
  progress.line(`job runs as pid ${job.pid}, a filter fed through stdin as pid ${filter.pid}`);

  const cutter = new Cutter(proxy, progress, distance, stage.cuts);
  // During a cut the job runs on by two thirds of the way to the next one.
  const pace = new Pace(job, batch, Math.floor((distance * 2) / 3));
  const onLines = (lines: number): void => {
    progress.update(lines, files);
    cutter.passed(lines);
    pace.passed(lines);
  };
  const [fromJob, fromFilter] = await Promise.all([feed(job, filter, onLines), collect(filter)]);
  progress.done();
  for (const { name, exitCode } of [fromJob, fromFilter]) {
    if (exitCode !== 0) throw new CommandError(`the ${name} ended with code ${exitCode}`);
  }

  const { cuts } = proxy.counters;
  const filterDigest = await digestOf(filterCopy);
  const filterAgrees = filterDigest === fromFilter.digest;
  const jobDigest = await digestOf(jobCopy);
  progress.line(
    `events: ${fromJob.events + fromFilter.events}, bytes received: ${fromJob.bytes + fromFilter.bytes}, ` +
      `bytes sent to the filter: ${fromJob.bytes}, cuts: ${cuts}`,
  );
  progress.line(
    `the filter's output ${filterAgrees ? 'is what it' : 'DIFFERS from what it'} wrote to disk: ${fromFilter.digest}`,
  );
  progress.line(`sha256 of what the client received: ${fromJob.digest}`);
  progress.line(`sha256 of what the job wrote:       ${jobDigest}`);
  if (fromJob.digest !== jobDigest || !filterAgrees) {
    progress.line('the two DIFFER: bytes were lost, doubled or reordered');
    return ExitCode.failure;
  }
  if (cuts < Math.max(3, stage.cuts)) {
    progress.line(`only ${cuts} cuts happened; the demo proves nothing; run it again with a larger folder (--path)`);
    return ExitCode.failure;
  }
  progress.line(`equal: nothing was lost over ${cuts} cuts`);
  return ExitCode.ok;
}

/** Cuts the connection at even distances through the job. */
class Cutter {
  readonly #proxy: FaultProxy;
  readonly #progress: Progress;
  readonly #every: number;
  #left: number;
  #next: number;

  constructor(proxy: FaultProxy, progress: Progress, every: number, cuts: number) {
    this.#proxy = proxy;
    this.#progress = progress;
    this.#every = every;
    this.#left = cuts;
    this.#next = this.#every;
  }

  passed(lines: number): void {
    if (this.#left === 0 || lines < this.#next || this.#proxy.counters.open === 0) return;
    this.#left -= 1;
    this.#next = Math.max(this.#next + this.#every, lines + 1);
    this.#progress.cut(lines);
    this.#proxy.refuse(REFUSED_DIALS);
    this.#proxy.cut();
  }
}

/** Lets the job run ahead of what has arrived by so many lines. */
class Pace {
  readonly #job: ProcessHandle;
  readonly #batch: number;
  readonly #ahead: number;
  #granted = 0;

  constructor(job: ProcessHandle, batch: number, ahead: number) {
    this.#job = job;
    this.#batch = batch;
    this.#ahead = ahead;
  }

  passed(lines: number): void {
    const wanted = Math.ceil((lines + this.#ahead) / this.#batch);
    if (wanted <= this.#granted) return;
    const more = 'go\n'.repeat(wanted - this.#granted);
    this.#granted = wanted;
    // Written into a cut it waits; a job that has ended takes nothing more, and a failed client shows in the events.
    this.#job.write(more).catch(() => undefined);
  }
}

interface Received {
  readonly name: string;
  readonly events: number;
  readonly bytes: number;
  readonly digest: string;
  readonly exitCode: number;
}

/** Takes what the job prints and writes it to the filter's stdin. */
async function feed(job: ProcessHandle, filter: ProcessHandle, onLines: (lines: number) => void): Promise<Received> {
  let lines = 0;
  onLines(lines);
  const received = await take('job', job, async (bytes) => {
    for (const byte of bytes) if (byte === 0x0a) lines += 1;
    onLines(lines);
    await filter.write(bytes);
  });
  await filter.end();
  return received;
}

function collect(filter: ProcessHandle): Promise<Received> {
  return take('filter', filter, () => Promise.resolve());
}

async function take(
  name: string,
  handle: ProcessHandle,
  each: (bytes: Uint8Array) => Promise<void>,
): Promise<Received> {
  const hash: Hash = createHash('sha256');
  let events = 0;
  let bytes = 0;
  let exitCode = -1;
  for await (const event of handle) {
    events += 1;
    if (event.type === 'output' && event.stream === 'stdout') {
      hash.update(event.bytes);
      bytes += event.bytes.length;
      await each(event.bytes);
    } else if (event.type === 'output') {
      process.stderr.write(event.bytes);
    } else if (event.type === 'gap') {
      throw new CommandError(
        `events ${event.fromSeq} to ${event.throughSeq} of the ${name} are lost: a cut lasted longer than its window`,
      );
    } else if (event.type === 'exited') {
      exitCode = event.exitCode;
    }
  }
  return { name, events, bytes, digest: hash.digest('hex'), exitCode };
}

async function countFiles(client: Client, path: string): Promise<number> {
  const result = await client.run(['sh', '-c', 'cd -- "$1" 2>/dev/null && find . -type f | wc -l', 'count', path]);
  if (result.exitCode !== 0) {
    throw new CommandError(`cannot list ${path}; name a folder that this user may read with --path`);
  }
  return Number(Buffer.from(result.stdout).toString('utf8').trim());
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) {
    // A read stream without an encoding gives buffers.
    hash.update(chunk as Buffer);
  }
  return hash.digest('hex');
}

/** The outermost node_modules folder that holds what this program runs on. */
function dependenciesFolder(): string {
  const place = fileURLToPath(import.meta.resolve('@exec-server/protocol'));
  const commander = fileURLToPath(import.meta.resolve('commander'));
  for (const file of [commander, place]) {
    const index = file.indexOf(`${sep}node_modules${sep}`);
    if (index >= 0) return file.slice(0, index + `${sep}node_modules`.length);
  }
  throw new CommandError('no folder of installed dependencies was found; name another one with --path');
}
