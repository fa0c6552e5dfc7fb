/** Real processes of which every byte, the exit and the end are known before they run; each checks that it happened so. */
import type { Client, ProcessHandle } from '@exec-server/client';
import type { SeededRandom } from '@exec-server/testing';
import { expect } from 'vitest';
import { floodBytes, floodDigest, floodText, FloodView } from './flood.js';

interface Ending {
  readonly exitCode: number;
  readonly signal: string | undefined;
  readonly reason: 'exited' | 'terminated';
}

export interface KnownProcess {
  readonly words: string;
  readonly argv: readonly string[];
  /** Lines of a flood on each stream. */
  readonly stdout: number;
  readonly stderr: number;
  /** What it reads: the pieces of a flood that it gives back. */
  readonly input: readonly Uint8Array[] | undefined;
  /** Whether it is terminated once its output has come; else it ends by itself. */
  readonly terminated: boolean;
  readonly ending: Ending;
  /** Whether its events are looked at only when it is over. */
  readonly late: boolean;
  readonly released: boolean;
}

const exits = (exitCode: number): Ending => ({ exitCode, signal: undefined, reason: 'exited' });

export function drawProcess(random: SeededRandom): KnownProcess {
  const common = { late: random.integer(4) === 0, released: random.integer(3) === 0 };
  const lines = (most: number): number => Math.floor(most ** random.next());
  switch (random.integer(5)) {
    case 0:
      return fromScript(lines(20_000), 0, 'exit 0', exits(0), common);
    case 1: {
      const code = random.integer(120);
      return fromScript(lines(10_000), lines(10_000), `exit ${code}`, exits(code), common);
    }
    case 2: {
      const ending: Ending = { exitCode: 143, signal: 'SIGTERM', reason: 'exited' };
      return fromScript(lines(2_000), lines(100), 'kill -TERM $$', ending, common);
    }
    case 3: {
      const ending: Ending = { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' };
      return { ...fromScript(lines(500), lines(500), 'exec sleep 600', ending, common), terminated: true, late: false };
    }
    default:
      return echo(random, lines(12_000), common);
  }
}

type Common = Pick<KnownProcess, 'late' | 'released'>;

/** Both streams at once, then an end. */
function fromScript(stdout: number, stderr: number, end: string, ending: Ending, common: Common): KnownProcess {
  const flood = (count: number): string => `seq -f %015.0f 0 ${count - 1}`;
  const script = `${stderr > 0 ? `${flood(stderr)} >&2 &` : ''} ${flood(stdout)}; wait; ${end}`;
  const words = `${stdout} and ${stderr} lines, then ${end}${common.late ? ', looked at late' : ''}`;
  return { ...common, words, argv: ['sh', '-c', script], stdout, stderr, input: undefined, terminated: false, ending };
}

/** Gives back what it reads, on one stream or on both. */
function echo(random: SeededRandom, lines: number, common: Common): KnownProcess {
  const both = random.integer(2) === 0;
  const text = floodText(lines);
  const input: Uint8Array[] = [];
  const most = 1 + Math.ceil(text.length / (1 + random.integer(20)));
  for (let at = 0; at < text.length; at += input.at(-1)?.length ?? 1) {
    input.push(text.subarray(at, at + 1 + random.integer(most)));
  }
  return {
    ...common,
    words: `${lines} lines echoed ${both ? 'on both streams' : ''} from ${input.length} writes`,
    argv: both ? ['tee', '/dev/stderr'] : ['cat'],
    stdout: lines,
    stderr: both ? lines : 0,
    input,
    terminated: false,
    ending: exits(0),
  };
}

/** Starts it, feeds it, and checks its events, its output and its end. */
export async function runKnown(client: Client, known: KnownProcess): Promise<void> {
  const { argv, input, late, released, ending } = known;
  const handle = await client.start({ argv, stdin: input === undefined ? 'none' : 'pipe' });
  const writing = input === undefined ? undefined : feed(handle, input);
  // Looked at below, unless the events fail first.
  writing?.catch(() => undefined);
  if (late) await handle.closed();
  await take(handle, known);
  await writing;
  expect(await handle.wait()).toEqual(ending);
  expect(await handle.closed()).toMatchObject({ reason: 'ended' });
  if (released) await handle.release();
}

/** Some writes are waited for, some follow each other at once. */
async function feed(handle: ProcessHandle, input: readonly Uint8Array[]): Promise<void> {
  let writes: Promise<void>[] = [];
  for (const [index, piece] of input.entries()) {
    writes.push(handle.write(piece));
    if (index % 3 !== 0) continue;
    await Promise.all(writes);
    writes = [];
  }
  await Promise.all([...writes, handle.end()]);
}

async function take(handle: ProcessHandle, { stdout, stderr, terminated }: KnownProcess): Promise<void> {
  const views = { stdout: new FloodView(), stderr: new FloodView(), pty: new FloodView() };
  const ends: string[] = [];
  let last = 0;
  let ending: Promise<unknown> | undefined;
  const isOut = (): boolean => views.stdout.offset === floodBytes(stdout) && views.stderr.offset === floodBytes(stderr);
  if (terminated && isOut()) ending = handle.terminate();
  for await (const event of handle) {
    if (event.type === 'gap') throw new Error(`events ${event.fromSeq}-${event.throughSeq} are said to be gone`);
    if (event.seq !== last + 1) throw new Error(`event ${event.seq} (${event.type}) came behind event ${last}`);
    last = event.seq;
    if (event.type === 'output') views[event.stream].output(event.bytes);
    else ends.push(event.type);
    if (terminated && isOut()) ending ??= handle.terminate();
  }
  await ending;
  expect(ends).toEqual(['exited', 'closed']);
  expect(views.stdout).toMatchObject({ received: floodBytes(stdout), digest: floodDigest(stdout) });
  expect(views.stderr).toMatchObject({ received: floodBytes(stderr), digest: floodDigest(stderr) });
}
