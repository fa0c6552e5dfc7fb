import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, readdirSync, readSync, writeSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { closePipes, type HelperShell, helperShells, makePipes } from './pipeHelper.js';
import { PipePool, type PipePoolOptions } from './pipePool.js';

const [bash, plain] = helperShells;
const pools: PipePool[] = [];

function createPool(options?: PipePoolOptions): PipePool {
  const pool = new PipePool(options);
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

function script(text: string): HelperShell {
  return { program: '/bin/sh', args: () => ['-c', text], most: 64 };
}

describe('a batch of pipes', () => {
  it.each([
    ['bash', bash, 20],
    ['a plain shell', plain, 7],
  ])('from %s is empty, sees EOF and EPIPE, and works', async (_name, shell, count) => {
    if (shell === undefined) throw new Error('no such shell');
    const batch = await makePipes(shell, 20);
    if (batch.outcome !== 'made') throw new Error(batch.outcome);
    expect(batch.pipes).toHaveLength(count);
    const buffer = Buffer.alloc(10);
    for (const [index, { reader, writer }] of batch.pipes.entries()) {
      expect(fstatSync(reader).isFIFO()).toBe(true);
      expect(() => readSync(reader, buffer)).toThrow('EAGAIN');
      expect(writeSync(writer, 'abc')).toBe(3);
      expect(readSync(reader, buffer)).toBe(3);
      if (index % 2 === 0) {
        closeSync(writer);
        expect(readSync(reader, buffer)).toBe(0);
        closeSync(reader);
      } else {
        closeSync(reader);
        expect(() => writeSync(writer, 'abc')).toThrow('EPIPE');
        closeSync(writer);
      }
    }
  });

  it.each([
    ['prints nothing', 'exit 0', { outcome: 'unsuitable' }],
    ['prints no numbers', 'echo hello; read -r end', { outcome: 'unsuitable' }],
    ['keeps here-documents in files', 'exec 3</etc/passwd; echo 3; read -r end', { outcome: 'unsuitable' }],
    ['is killed', 'kill -9 $$', { outcome: 'failed', code: 'EAGAIN' }],
    ['prints a number it has not', 'echo 77; read -r end', { outcome: 'failed', code: 'EAGAIN' }],
  ])('is refused when the shell %s', async (_name, text, outcome) => {
    const before = descriptors();
    expect(await makePipes(script(text), 8)).toEqual(outcome);
    await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
  });

  it('is refused when there is no such shell', async () => {
    const before = descriptors();
    expect(await makePipes({ program: '/no/such/shell', args: () => [], most: 1 }, 1)).toEqual({
      outcome: 'unsuitable',
    });
    await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
  });
});

describe('a helper shell', () => {
  it.each(helperShells)('$program ends when we are gone', async ({ program, args }) => {
    const helper = spawn(program, args(4), { stdio: ['pipe', 'pipe', 'ignore'] });
    await once(helper.stdout, 'data');
    helper.stdin.destroy();
    expect((await once(helper, 'exit'))[1]).toBeNull();
  });
});

describe('the pool', () => {
  it('hands out what it has and refills before it is empty', async () => {
    const pool = createPool({ batchPipes: 16 });
    const first = (await pool.take(3)) ?? [];
    expect(first).toHaveLength(3);
    const more = (await pool.take(10)) ?? [];
    await vi.waitFor(() => expect(pool.free).toBeGreaterThanOrEqual(16));
    expect(new Set([...first, ...more].flatMap(({ reader, writer }) => [reader, writer])).size).toBe(26);
    closePipes([...first, ...more]);
  });

  it('serves a burst in order, growing its batches', async () => {
    const pool = createPool({ batchPipes: 64 });
    const order: number[] = [];
    const takes = Array.from({ length: 100 }, async (_, index) => {
      const pipes = (await pool.take(3)) ?? [];
      order.push(index);
      closePipes(pipes);
    });
    await Promise.all(takes);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  it('keeps few when idle and takes back what was not used', async () => {
    const pool = createPool({ batchPipes: 16, idlePipes: 4, idleMs: 20 });
    pool.putBack((await pool.take(3)) ?? []);
    await vi.waitFor(() => expect(pool.free).toBe(4));
    closePipes((await pool.take(2)) ?? []);
  });

  it('falls back to the next shell, and to none', async () => {
    expect(await createPool({ shells: [script('exit 0')] }).take(2)).toBeUndefined();
    const pool = createPool({ shells: [script('exit 0'), ...helperShells.slice(1)] });
    const pipes = (await pool.take(9)) ?? [];
    expect(pipes).toHaveLength(9);
    closePipes(pipes);
  });

  it('reports a passing failure to those who wait and tries again for the next', async () => {
    const pool = createPool({ shells: [script('kill -9 $$')] });
    const takes = [pool.take(2), pool.take(2)];
    for (const take of takes) await expect(take).rejects.toMatchObject({ reason: 'resourcesExhausted' });
    await expect(pool.take(2)).rejects.toMatchObject({ reason: 'resourcesExhausted' });
  });

  it('frees everything on close, with a helper under way', async () => {
    const before = descriptors();
    const pool = createPool();
    const taking = pool.take(2);
    const [result] = await Promise.allSettled([taking, pool.close()]);
    expect(result).toMatchObject({ status: 'rejected', reason: { reason: 'serverStopping' } });
    await expect(pool.take(1)).rejects.toMatchObject({ reason: 'serverStopping' });
    await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
  });
});
