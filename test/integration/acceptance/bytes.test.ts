/** The bytes a program writes are the bytes that arrive. */
import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { scaled } from '../../support/scale.js';
import { Trial, wires } from '../../support/trial.js';

describe.each(wires)('output over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  it('carries split and bad UTF-8, NUL, and a last line without newline', async () => {
    const script = "printf '\\342'; sleep .1; printf '\\202'; sleep .1; printf '\\254'; printf '\\377\\376\\000tail'";
    const process = await trial.sh(script);
    await process.over;
    expect(process.bytes.toString('hex')).toBe('e282acfffe007461696c');
    expect(process.order).toEqual(['output', 'exited', 'closed']);
    let decoded = '';
    for await (const piece of process.handle.text()) decoded += piece;
    expect(decoded).toBe('€\uFFFD\uFFFD\0tail');
    expect((await trial.client.run(['sh', '-c', script])).text()).toBe('€\uFFFD\uFFFD\0tail');
  });

  it('keeps every byte value in order', async () => {
    const all = Buffer.from(Array.from({ length: 256 * 64 }, (_, index) => (index * 7) % 256));
    const result = await trial.client.run(['cat'], { input: all });
    expect(Buffer.from(result.stdout).equals(all)).toBe(true);
  });

  it(`loses nothing of 200,000 bytes written right before the exit, ${scaled(10, 100)} times on a terminal`, async () => {
    for (let round = 0; round < scaled(10, 100); round += 1) {
      const result = await trial.client.run(['sh', '-c', "head -c 200000 /dev/zero | tr '\\0' x; exit 9"], {
        tty: true,
      });
      expect(result).toMatchObject({ exitCode: 9, stdoutBytes: 200_000, closed: true, gaps: [] });
      expect(Buffer.from(result.stdout).equals(Buffer.alloc(200_000, 'x'))).toBe(true);
    }
  });

  it(`loses nothing of them on ten terminals and ten pipes at once`, async () => {
    const script = "head -c 200000 /dev/zero | tr '\\0' x; exit 9";
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => trial.client.run(['sh', '-c', script], { tty: index % 2 === 0 })),
    );
    for (const result of results) expect(result).toMatchObject({ exitCode: 9, stdoutBytes: 200_000 });
  });

  it('gives a program nothing of the server but its three streams', async () => {
    const others = await Promise.all(
      Array.from({ length: 10 }, (_, index) => trial.start(['cat'], { tty: index % 2 === 0, stdin: 'pipe' })),
    );
    const list = ['ls', '-l', '/proc/self/fd'] as const;
    // What this program itself was started with goes on to all, and so do stand-ins for what must not.
    const inherited = extraDescriptors(execFileSync(list[0], list.slice(1), { encoding: 'utf8' }));
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => trial.client.run(list, { tty: index % 2 === 0 })),
    );
    for (const { handle } of others) await handle.terminate();
    for (const result of results) {
      const extra = extraDescriptors(result.text()).filter((target) => !inherited.includes(target));
      expect(extra.filter((target) => target !== '/dev/null')).toEqual([]);
    }
  });

  it.each([
    ['/dev/stdout', 'echo hi > /dev/stdout', 'hi\n', ''],
    ['/dev/stderr', 'echo hi > /dev/stderr', '', 'hi\n'],
    ['/dev/fd/1 and 2', 'echo a > /dev/fd/1; echo b > /proc/self/fd/2', 'a\n', 'b\n'],
    ['/dev/stderr by tee', 'echo both | tee /dev/stderr', 'both\n', 'both\n'],
    ['/dev/stdout twice', 'echo one >> /dev/stdout; echo two > /dev/stdout', 'one\ntwo\n', ''],
    ['an empty /dev/stdin', 'cat /dev/stdin; echo end', 'end\n', ''],
  ])('lets a program open %s', async (_name, script, stdout, stderr) => {
    const result = await trial.client.run(['sh', '-c', script]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect([result.text(), result.text('stderr')]).toEqual([stdout, stderr]);
  });

  it('lets a program open /dev/stdin, before and after its end', async () => {
    const reader = await trial.sh('echo ready; cat /dev/stdin; echo end', { stdin: 'pipe' });
    await reader.see('ready');
    await reader.handle.write('sent ');
    await reader.handle.end('later');
    await reader.over;
    expect(reader.text).toBe('ready\nsent laterend\n');
    const late = await trial.sh('read -r _; echo first; cat /dev/stdin; echo end', { stdin: 'pipe' });
    await late.handle.end('line\n');
    await late.over;
    expect(late.text).toBe('first\nend\n');
  });

  it('lets a program on a terminal open /dev/tty and /dev/std*', async () => {
    const script = 'echo a > /dev/tty; echo b > /dev/stdout; echo c > /dev/stderr; read -r x < /dev/stdin; echo "<$x>"';
    const process = await trial.sh(`stty -echo; ${script}`, { tty: true });
    await process.see('c\r\n');
    await process.handle.write('typed\n');
    await process.over;
    expect(process.text).toBe('a\r\nb\r\nc\r\n<typed>\r\n');
  });
});

/** What the numbers above the three streams stand for, without the folder that was listed. */
function extraDescriptors(listing: string): string[] {
  const entries = [...listing.matchAll(/ (\d+) -> '?([^'\r\n]+)/g)];
  return entries.flatMap(([, number, target = '']) => (Number(number) > 2 ? [target] : [])).filter(isNoFolder);
}

function isNoFolder(target: string): boolean {
  return !/^\/proc\/\d+\/fd$/.test(target);
}
