import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MemorySegmentFs } from '../../../../../test/support/memorySegmentFs.js';
import type { OutputEvent } from '../eventLog.js';
import { hostSegmentFs } from './segmentFs.js';
import type { Spool } from './spool.js';
import { type SpoolProblem, SpoolStore, type SpoolStoreOptions } from './spoolStore.js';

const MIB = 1024 * 1024;

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spool-test-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function storeWith(options: Partial<SpoolStoreOptions> = {}): { store: SpoolStore; problems: SpoolProblem[] } {
  const problems: SpoolProblem[] = [];
  return { store: new SpoolStore({ dir, onProblem: (problem) => problems.push(problem), ...options }), problems };
}

function opened(store: SpoolStore, session = store.sessionBudget()): Spool {
  const spool = store.open(session, () => undefined);
  if (spool === undefined) throw new Error('there is no spool');
  return spool;
}

async function written(spool: Spool): Promise<void> {
  while (spool.pendingBytes > 0 && spool.errno === undefined) await sleep(1);
}

function chunk(seq: number, offset: number, bytes: Uint8Array): OutputEvent {
  return { kind: 'output', seq, stream: 'stdout', bytes, offset };
}

const listsDescriptors = existsSync('/proc/self/fd');

/** Descriptors of spool files in this program. */
function openSpoolFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).includes('exec-server-spool-')).length;
}

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The descriptor of the listing itself is gone by now.
    return '';
  }
}

describe('SpoolStore', () => {
  it('gives back 64 MiB of mixed chunks exactly, and shows neither file nor folder meanwhile, so that a crash leaves nothing', async () => {
    const { store, problems } = storeWith();
    expect(readdirSync(dir)).toEqual([]);
    const spool = opened(store);
    const sizes = [1, 65_536, 17, 4096, 8191, 8192, 65_536, 300_000, 1000];
    const source = Buffer.alloc(MIB + 300_000);
    for (let index = 0; index < source.length; index += 4)
      source.writeUInt32LE(Math.imul(index, 2_654_435_761) >>> 0, index);
    const wrote = createHash('sha256');
    let offset = 0;
    let seq = 1;
    for (; offset < 64 * MIB; seq += 1) {
      const start = (seq * 7919) % MIB;
      const bytes = source.subarray(start, start + (sizes[seq % sizes.length] ?? 1));
      wrote.update(bytes);
      expect(spool.append(chunk(seq, offset, bytes))).toBe(true);
      offset += bytes.length;
      if (spool.pendingBytes > 4 * MIB) await nextTurn();
    }
    await written(spool);
    expect(store.spooledBytes).toBe(offset);
    expect(readdirSync(dir)).toEqual([]);
    if (listsDescriptors) expect(openSpoolFiles()).toBe(3);
    const read = createHash('sha256');
    let through = 0;
    while (through < seq - 1) {
      const events = await spool.read(through, MIB, 1000);
      for (const event of events) {
        expect(event.seq).toBe(through + 1);
        through = event.seq;
        read.update(event.bytes);
      }
      spool.dropThrough(through);
    }
    expect(read.digest('hex')).toBe(wrote.digest('hex'));
    expect([spool.bytes, store.spooledBytes, problems]).toEqual([0, 0, []]);
    await store.close();
    expect(readdirSync(dir)).toEqual([]);
    if (listsDescriptors) expect(openSpoolFiles()).toBe(0);
  });

  it('makes files in a folder that is closed to others', async () => {
    const modes: number[] = [];
    const open = (path: string): Promise<number> => {
      modes.push(statSync(dirname(path)).mode & 0o777);
      return hostSegmentFs.open(path);
    };
    const { store } = storeWith({ fs: { ...hostSegmentFs, open } });
    const spool = opened(store);
    spool.append(chunk(1, 0, Uint8Array.of(1)));
    await written(spool);
    expect(modes).toEqual([0o700]);
    await store.close();
  });

  it('says once that folders cannot be removed, and goes on', async () => {
    const removeFolder = (): Promise<void> => Promise.reject(Object.assign(new Error('injected'), { code: 'EBUSY' }));
    const { store, problems } = storeWith({ fs: { ...hostSegmentFs, removeFolder } });
    for (const spool of [opened(store), opened(store)]) {
      spool.append(chunk(1, 0, Uint8Array.of(1)));
      await written(spool);
      expect([spool.errno, spool.pendingBytes]).toEqual([undefined, 0]);
    }
    expect(problems.map(({ kind, errno }) => `${kind} ${errno}`)).toEqual(['left EBUSY']);
    await store.close();
  });

  it('closes descriptors of spools in use, and opens none after its close', async () => {
    const { store } = storeWith();
    const spools = [1, 2, 3].map(() => opened(store));
    for (const spool of spools) spool.append(chunk(1, 0, new Uint8Array(3 * MIB)));
    await store.close();
    expect(store.spools).toBe(0);
    if (listsDescriptors) expect(openSpoolFiles()).toBe(0);
    expect(store.open(store.sessionBudget(), () => undefined)).toBeUndefined();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('does without spools in a folder that takes no file, and says so once', async () => {
    const notAFolder = join(dir, 'file');
    writeFileSync(notAFolder, '');
    const { store, problems } = storeWith({ dir: notAFolder });
    const session = store.sessionBudget();
    expect(store.open(session, () => undefined)).toBeUndefined();
    expect(store.open(session, () => undefined)).toBeUndefined();
    expect(problems).toEqual([{ kind: 'unavailable', path: notAFolder, errno: 'ENOTDIR' }]);
    rmSync(notAFolder);
    await store.close();
  });

  it('makes its folder again when the host cleaned it up', async () => {
    const { store, problems } = storeWith();
    const spools = [opened(store), opened(store)];
    for (const name of readdirSync(dir)) rmSync(join(dir, name), { recursive: true });
    for (const spool of spools) spool.append(chunk(1, 0, Uint8Array.of(1, 2, 3)));
    for (const spool of spools) await written(spool);
    expect([readdirSync(dir), problems]).toEqual([[], []]);
    await store.close();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('tells of a full disk once for all processes, and again after it had room', async () => {
    const fs = new MemorySegmentFs();
    const { store, problems } = storeWith({ fs });
    const spools = [opened(store), opened(store)];
    const appendAll = (seq: number): void => {
      for (const spool of spools) spool.append(chunk(seq, (seq - 1) * 100, new Uint8Array(100)));
    };
    const settle = async (): Promise<void> => {
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    };
    fs.fault = (kind) => (kind === 'write' ? 'EDQUOT' : undefined);
    appendAll(1);
    await settle();
    expect(spools.map(({ errno }) => errno)).toEqual(['EDQUOT', 'EDQUOT']);
    expect(problems.map(({ kind, errno }) => `${kind} ${errno}`)).toEqual(['full EDQUOT']);
    fs.fault = () => undefined;
    for (const spool of spools) spool.dropThrough(1);
    appendAll(2);
    await settle();
    expect([store.pendingBytes, store.spooledBytes]).toEqual([0, 200]);
    fs.fault = (kind) => (kind === 'write' ? 'EIO' : undefined);
    appendAll(3);
    await settle();
    expect(problems.map(({ errno }) => errno)).toEqual(['EDQUOT', 'EIO']);
    await store.close();
    expect(fs.openFiles).toBe(0);
  });

  it('bounds a process, a session and the server', async () => {
    const limits = { processBytes: 1000, sessionBytes: 1500, serverBytes: 2000 };
    const { store } = storeWith({ limits });
    const session = store.sessionBudget();
    const append = (spool: Spool, length: number): boolean => spool.append(chunk(1, 0, new Uint8Array(length)));
    expect(append(opened(store, session), 1001)).toBe(false);
    expect(append(opened(store, session), 900)).toBe(true);
    expect(append(opened(store, session), 900)).toBe(false);
    expect(append(opened(store), 900)).toBe(true);
    expect(append(opened(store), 900)).toBe(false);
    await store.close();
    expect(session.usedBytes).toBe(0);
  });
});
