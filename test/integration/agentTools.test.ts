/** The tools of the example of an agent, apart from its demonstration: what they show of output, and what they end. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from '../support/links.js';
import { runClean } from '../support/runClean.js';
import { until } from '../support/until.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

interface Look {
  readonly id: string;
  readonly running: boolean;
  readonly exit: { readonly exitCode: number; readonly signal: string | undefined } | undefined;
  readonly text: string;
  readonly omittedBytes: number;
}

/** What the part of the agent before its demonstration has. */
interface Tools {
  run(options: { argv: string[]; cwd?: string; waitMs?: number; maxBytes?: number }): Promise<Look>;
  poll(id: string, waitMs?: number): Promise<Look>;
  write(id: string, text: string): Promise<void>;
  kill(id: string): Promise<Look>;
  readonly client: { close(): Promise<void> };
}

describe('the tools of the agent', () => {
  let folder: string;
  let tools: Tools;
  let head: string;

  /** Inside the workspace, so that the packages are found. */
  const place = async (name: string, program: string): Promise<string> => {
    await writeFile(join(folder, name), program);
    return join(folder, name);
  };
  const load = async (name: string): Promise<Tools> => {
    const program = await place(name, `${head}\nexport { run, poll, write, kill, client };\n`);
    return import(pathToFileURL(program).href);
  };
  const sh = (script: string): string[] => ['sh', '-c', script];
  /** Looks until the output so far is that, or the end. */
  const seeing = async (agent: Tools, first: Look, wanted: RegExp): Promise<string> => {
    let seen = first.text;
    for (let look = first; look.running && !wanted.test(seen); ) {
      look = await agent.poll(first.id, 20);
      seen += look.text;
    }
    return seen;
  };

  beforeAll(async () => {
    const parts = (await readFile(join(root, 'examples/stdio-agent/agent.mjs'), 'utf8')).split(
      '// What an agent does with them.',
    );
    expect(parts).toHaveLength(2);
    head = parts[0] ?? '';
    folder = await mkdtemp(join(root, 'node_modules', '.examples-'));
    tools = await load('tools.mjs');
  });
  afterAll(async () => {
    await tools.client.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('never show half a character, however it is written', async () => {
    const script = String.raw`printf 'go\342'; read x; printf '\202'; read x; printf '\254\360\237'`;
    const first = await tools.run({ argv: sh(script), waitMs: 20 });
    expect(await seeing(tools, first, /go/)).toBe('go');
    await tools.write(first.id, '\n');
    expect(await tools.poll(first.id, 20)).toMatchObject({ running: true, text: '' });
    await tools.write(first.id, '\n');
    // The command itself ends in the middle of a character.
    expect(await tools.poll(first.id)).toMatchObject({ running: false, text: '€\uFFFD' });
  });

  it('hand over each byte once, over many looks', async () => {
    const script = 'i=0; while [ $i -lt 30 ]; do echo "$i €"; read x; i=$((i+1)); done';
    const first = await tools.run({ argv: sh(script), waitMs: 0 });
    let seen = first.text;
    let asked = 0;
    for (let look = first; look.running; seen += look.text) {
      if (seen.endsWith(`${asked} €\n`)) {
        asked += 1;
        await tools.write(first.id, '\n');
      }
      look = await tools.poll(first.id, 5);
    }
    expect(seen).toBe(Array.from({ length: 30 }, (_, index) => `${index} €\n`).join(''));
    await expect(tools.poll(first.id)).rejects.toThrow(/its end has been told/);
  });

  it('say that a program is missing, and which exit code came', async () => {
    await expect(tools.run({ argv: ['no-such-program'] })).rejects.toMatchObject({
      data: { reason: 'programNotFound' },
    });
    const look = await tools.run({ argv: sh('pwd; exit 3'), cwd: '/' });
    expect(look).toMatchObject({ text: '/\n', exit: { exitCode: 3 } });
  });

  it('kill what a command left behind, and the one that ignores it', async () => {
    const script = "trap '' TERM; setsid sleep 600 & echo $!; while :; do wait; done";
    const first = await tools.run({ argv: sh(script), waitMs: 20 });
    const child = Number(await seeing(tools, first, /\n/));
    expect(isAlive(child)).toBe(true);
    expect(await tools.kill(first.id)).toMatchObject({
      running: false,
      exit: { signal: 'SIGKILL', exitCode: 137 },
    });
    await until(() => !isAlive(child), 'the child to end');
    await expect(tools.kill(first.id)).rejects.toThrow(/no process/);
  });

  it('say at the next look that the server has ended', async () => {
    const others = await load('others.mjs');
    const first = await others.run({ argv: sh('echo $PPID; exec sleep 600'), waitMs: 20 });
    // The parent of the shell is the server.
    process.kill(Number(await seeing(others, first, /\n/)), 'SIGKILL');
    await expect(others.poll(first.id)).rejects.toMatchObject({ code: 'SERVER_GONE' });
    await expect(others.run({ argv: ['true'] })).rejects.toMatchObject({ code: 'SERVER_GONE' });
    await others.client.close();
  });

  it('hold little of 200 MB', async () => {
    const flood = String.raw`head -c 200000000 /dev/zero | tr '\0' x`;
    const program = `${head}
let look = await run({ argv: ['sh', '-c', ${JSON.stringify(flood)}], maxBytes: 1000 });
let bytes = 0;
for (; ; look = await poll(look.id)) {
  bytes += look.omittedBytes + look.text.replace(/\\n.*\\n/, '').length;
  if (!look.running) break;
}
await client.close();
console.log(JSON.stringify({ bytes, peakKiB: process.resourceUsage().maxRSS }));
`;
    const { bytes, peakKiB } = JSON.parse(await runClean(await place('flood.mjs', program)));
    expect(bytes).toBe(200_000_000);
    expect(peakKiB).toBeLessThan(180 * 1024);
  });
});
