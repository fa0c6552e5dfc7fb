/** What callers hold, on whatever server: runs and streams of bytes. */
import { expect, it } from 'vitest';
import { isAlive } from '../links.js';
import { until } from '../until.js';
import type { Subject } from './subject.js';

const decoder = new TextDecoder();

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of stream) text += decoder.decode(bytes, { stream: true });
  return text;
}

const sh = (script: string): [string, ...string[]] => ['/bin/sh', '-c', script];

export function surfaceBodies({ extended, join }: Subject): void {
  it('a stream nobody reads blocks neither the process nor the other stream', async () => {
    const joined = await join();
    const { client } = joined;
    const bytes = 8 * 1024 * 1024;
    const handle = await client.start({ argv: sh(`head -c ${bytes} /dev/zero >&2; echo done`) });
    expect(handle.stderr.locked).toBe(false);
    expect(await textOf(handle.stdout)).toBe('done\n');
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    await joined.expectClean();
  });

  it('a stream that is read slowly loses nothing in silence', async () => {
    const joined = await join();
    const { client } = joined;
    const bytes = 6 * 1024 * 1024;
    const handle = await client.start({ argv: sh(`head -c ${bytes} /dev/zero; echo err >&2`) });
    const stderr = textOf(handle.stderr);
    let length = 0;
    for await (const chunk of handle.stdout) {
      length += chunk.byteLength;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await stderr).toBe('err\n');
    if (extended) expect([length, handle.gaps]).toEqual([bytes, []]);
    // Without flow control the server may have let go of what this side had no room for.
    else expect(handle.gaps.length > 0).toBe(length < bytes);
    await joined.expectClean();
  });

  it('looks have what came since the last one, and the two ends of what is too much', async () => {
    const joined = await join();
    const { client } = joined;
    const argv = sh('echo ready; read go; seq 1 20000; exit 3');
    const handle = await client.start({ argv, stdin: 'pipe' });
    const looks = handle.collect({ maxBytes: 20 });
    let text = '';
    while (text !== 'ready\n') text += (await looks.look({ waitMs: 1_000, until: 'output' })).text;
    await handle.write('go\n');
    const last = await looks.look({ waitMs: 30_000 });
    const omittedBytes = Array.from({ length: 20_000 }, (_, at) => `${at + 1}\n`).join('').length - 20;
    expect(last).toMatchObject({
      text: `1\n2\n3\n4\n5\n\n[${omittedBytes} bytes left out]\n999\n20000\n`,
      omittedBytes,
      running: false,
      exit: { exitCode: 3 },
    });
    await joined.expectClean();
  });

  it('a run that takes too long is ended with its tree', async () => {
    const joined = await join();
    const { client } = joined;
    const result = await client.run(sh('sleep 600 & echo $!; wait'), { timeoutMs: 300 });
    expect(result).toMatchObject({ timedOut: true, reason: extended ? 'timedOut' : undefined, closed: true });
    expect(result.durationMs).toBeGreaterThanOrEqual(300);
    await until(() => !isAlive(Number(result.text())), 'the child of the child to die');
    await joined.expectClean();
  });

  it('a run keeps the first bytes and counts the rest', async () => {
    const joined = await join();
    const { client } = joined;
    const result = await client.run(sh('head -c 100000 /dev/zero; echo err >&2'), { maxBytes: 1_000 });
    expect(result).toMatchObject({ truncated: true, stdoutBytes: 100_000, stderrBytes: 4, exitCode: 0 });
    expect(result.stdout.byteLength).toBe(1_000);
    await joined.expectClean();
  });
}
