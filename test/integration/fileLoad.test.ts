/** Many file reads at a time: what they hold, and what they hold up. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { FilesRig } from '../support/filesRig.js';
import type { RawMessage } from '../support/raw.js';
import { command, rawLinks } from '../support/rawServed.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const READS = 200;
const HANDLES = 100;
/** One answer of 1 MiB in base64, and what is around it. */
const ANSWER_BYTES = 1.5 * MIB;

const largeReads = [
  ['fs/readFile', (rig: FilesRig) => ({ path: rig.at('f') })],
  ['fs/readBlock', (_rig: FilesRig, id: number) => ({ handleId: `h${id % HANDLES}`, offset: 0, len: MIB })],
] as const;

describe.each(rawLinks)('over %s', (link) => {
  it.each(largeReads)(
    '200 %s of 1 MiB at a time are made as they are sent, and output of a process goes in between',
    async (method, params) => {
      await using rig = await FilesRig.open(link);
      const content = randomBytes(MIB);
      await writeFile(rig.at('f'), content);
      for (let at = 0; at < HANDLES; at += 1) {
        await rig.result('fs/open', { handleId: `h${at}`, path: rig.at('f') });
      }
      await rig.result('process/start', command('echo', ['cat'], { pipeStdin: true }));
      let most = 0;
      const sample = (): void => {
        most = Math.max(most, rig.served.server.gauges().queuedBytes);
      };
      for (let id = 1; id <= READS; id += 1) rig.raw.send({ id, method, params: params(rig, id) });
      const write = { processId: 'echo', writeId: 'w', chunk: 'aGkK' };
      rig.raw.send({ id: 'write', method: 'process/write', params: write });
      const order: string[] = [];
      const expected = content.toString('base64');
      for (let answers = 0; answers < READS; ) {
        const message = await rig.raw.next();
        sample();
        if (typeof message.id !== 'number') {
          order.push(message.method ?? String(message.id));
          continue;
        }
        answers += 1;
        order.push('answer');
        expect(message.result?.['dataBase64'] === expected || message.result?.['chunk'] === expected).toBe(true);
      }
      expect(most).toBeLessThan(limits.FILE_REPLY_HIGH_WATER_BYTES + 2 * ANSWER_BYTES);
      // Behind what was on its way when it was asked for, and not behind all that was asked for.
      expect(order.indexOf('write')).toBeLessThan(READS / 2);
      expect(order.indexOf('process/output')).toBeGreaterThan(-1);
      expect(order.indexOf('process/output')).toBeLessThan(READS / 2);
      await rig.result('process/terminate', { processId: 'echo' });
    },
  );
});

describe('a client that does not read', () => {
  const read = (rig: FilesRig, id: number, name: string): void =>
    rig.raw.send({ id, method: 'fs/readFile', params: { path: rig.at(name) } });

  it('holds up its large answers alone', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('large'), randomBytes(MIB));
    await writeFile(rig.at('small'), 'x');
    rig.raw.transport.pause();
    const { server } = rig.served;
    for (let id = 1; id <= 20; id += 1) read(rig, id, 'large');
    for (let id = 21; id <= 40; id += 1) read(rig, id, 'small');
    // One large answer is on its way, and every small one.
    await until(() => server.gauges().pendingRequests === 19, 'small files are answered');
    expect(server.gauges().queuedBytes).toBeLessThan(2 * ANSWER_BYTES);
    rig.raw.transport.resume();
    const answers: RawMessage[] = [];
    while (answers.length < 40) answers.push(await rig.raw.next());
    // Small ones are read side by side, and answered as they come.
    const first = answers.slice(0, 21).map(({ id }) => Number(id));
    const small = Array.from({ length: 20 }, (_, at) => at + 21);
    // Which large one came first is up to the disk.
    expect(first.filter((id) => id > 20).toSorted((one, other) => one - other)).toEqual(small);
  });

  it('is not sent more small answers than a bound, either', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('f'), randomBytes(limits.SMALL_FILE_BYTES));
    rig.raw.transport.pause();
    const { server } = rig.served;
    const count = 400;
    for (let id = 1; id <= count; id += 1) read(rig, id, 'f');
    const answerBytes = (limits.SMALL_FILE_BYTES * 4) / 3 + 100;
    await until(() => server.gauges().queuedBytes >= limits.REPLY_HIGH_WATER_BYTES, 'answers fill the transport');
    const most = limits.REPLY_HIGH_WATER_BYTES + (limits.CONCURRENT_FILE_REQUESTS + 1) * answerBytes;
    for (let turn = 0; turn < 50; turn += 1) {
      expect(server.gauges().queuedBytes).toBeLessThan(most);
      await new Promise((resolve) => setImmediate(resolve));
    }
    rig.raw.transport.resume();
    for (let answers = 0; answers < count; answers += 1) expect((await rig.raw.next()).result).toBeDefined();
  });

  it('leaves nothing behind when it is cut while answers wait', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('large'), randomBytes(MIB));
    const other = await rig.served.ready();
    other.transport.pause();
    other.send({ id: 'o', method: 'fs/open', params: { handleId: 'h', path: rig.at('large') } });
    for (let id = 1; id <= 20; id += 1) {
      other.send({ id, method: 'fs/readFile', params: { path: rig.at('large') } });
      other.send({ id: `b${id}`, method: 'fs/readBlock', params: { handleId: 'h', offset: 0, len: MIB } });
    }
    await until(() => rig.served.server.gauges().queuedBytes > MIB, 'the first answer is made');
    other.transport.abort();
    await until(() => rig.served.server.gauges().pendingRequests === 0, 'what waited has failed');
    expect(rig.served.server.gauges().queuedBytes).toBe(0);
  });
});
