/** Stdin that is closed early, never read, or belongs to a terminal that is dead. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';
import type { Watched } from '../../support/watched.js';

const MIB = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

describe.each(wires)('stdin over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  const write = (processId: string, bytes: number, offset: number, eof = false) =>
    trial.client.call('process/write', { processId, chunk: Buffer.alloc(bytes, 'x').toString('base64'), offset, eof });
  const acceptedOf = async ({ id }: Watched): Promise<number> => {
    const { processes } = await trial.client.call('process/list', {});
    return processes.find(({ processId }) => processId === id)?.stdinBytes ?? -1;
  };

  it('answers that stdin is closed, with the bytes accepted, once the program has closed it', async () => {
    const process = await trial.sh('exec 0<&-; echo closed; sleep 1; exit 3', { stdin: 'pipe' });
    await process.see('closed');
    const first = await write(process.id, MIB, 0);
    const accepted = first.acceptedOffset ?? -1;
    expect([0, MIB]).toContain(accepted);
    expect(first.status).toBe(accepted === 0 ? 'stdinClosed' : 'accepted');
    await until(async () => (await write(process.id, 1, accepted)).status === 'stdinClosed', 'the pipe to be broken');
    expect(await write(process.id, MIB, accepted)).toEqual({ status: 'stdinClosed', acceptedOffset: accepted });
    expect(await write(process.id, 0, accepted, true)).toMatchObject({ status: 'stdinClosed' });
    await expect(process.handle.write('more')).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    expect((await process.handle.wait()).exitCode).toBe(3);
    await process.over;
    expect(process.text).toBe('closed\n');
    expect(await write(process.id, 1, accepted)).toEqual({ status: 'stdinClosed', acceptedOffset: accepted });
  });

  it('says how much of 10 MiB was accepted by a program that reads ten bytes', async () => {
    const process = await trial.sh('head -c 10 >/dev/null; exit 0', { stdin: 'pipe' });
    let offset = 0;
    for (;;) {
      const answer = await write(process.id, PIECE_BYTES, offset);
      if (answer.status === 'stdinClosed') {
        expect(answer.acceptedOffset).toBe(offset);
        break;
      }
      expect(answer).toEqual({ status: 'accepted', acceptedOffset: offset + PIECE_BYTES });
      offset += PIECE_BYTES;
      expect(offset).toBeLessThan(10 * MIB);
    }
    expect(await process.handle.wait()).toMatchObject({ exitCode: 0, signal: undefined });
  });

  it('ends a pipeline by SIGPIPE, as a shell expects it', async () => {
    const result = await trial.client.run(['bash', '-c', 'yes | head -n1; echo "${PIPESTATUS[@]}"']);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.text()).toBe('y\n141 0\n');
    expect(result.text('stderr')).toBe('');
  });

  it('refuses a write behind a hole, and answers a repeated one without writing it again', async () => {
    const process = await trial.start(['cat'], { stdin: 'pipe' });
    const { processId } = process.handle;
    const send = (text: string, offset: number) =>
      trial.client.call('process/write', { processId, chunk: Buffer.from(text).toString('base64'), offset });
    expect(await send('abc', 0)).toEqual({ status: 'accepted', acceptedOffset: 3 });
    expect(await send('abc', 0)).toEqual({ status: 'accepted', acceptedOffset: 3 });
    await expect(send('x', 4)).rejects.toMatchObject({ data: { reason: 'writeHole' } });
    expect(await send('bcdef', 1)).toEqual({ status: 'accepted', acceptedOffset: 6 });
    await process.handle.end();
    await process.over;
    expect(process.text).toBe('abcdef');
  });

  it.each([['a pipe', { stdin: 'pipe' }] as const, ['a terminal', { tty: true }] as const])(
    'holds up only the writes to a program that does not read %s, in bounded memory',
    async (_kind, options) => {
      const deaf = await trial.sh('[ -t 0 ] && stty raw -echo; echo ready; sleep 600', options);
      await deaf.see('ready');
      let written = false;
      const huge = deaf.handle.write(Buffer.alloc(32 * MIB)).then(
        () => 'accepted',
        (error: unknown) => error,
      );
      void huge.then(() => {
        written = true;
      });
      let last = -1;
      await until(async () => {
        const accepted = await acceptedOf(deaf);
        const still = accepted === last && accepted > 0;
        last = accepted;
        return still;
      }, 'the queue to be full');
      // The others go on as if nothing was.
      const others = await Promise.all(
        Array.from({ length: 4 }, () => trial.client.run(['cat'], { input: Buffer.alloc(2 * MIB, 'y') })),
      );
      for (const other of others) expect(other).toMatchObject({ exitCode: 0, stdoutBytes: 2 * MIB });
      expect(written).toBe(false);
      expect(await acceptedOf(deaf)).toBeLessThanOrEqual(1.5 * MIB);
      if (trial.server !== undefined) expect(trial.server.gauges().stdinQueuedBytes).toBeLessThanOrEqual(MIB);
      await deaf.handle.terminate();
      expect(await huge).toMatchObject({ code: 'STDIN_CLOSED' });
      await deaf.over;
      expect(trial.server?.gauges().stdinQueuedBytes ?? 0).toBe(0);
    },
  );

  it('brings what was queued for a dead terminal to no other one', async () => {
    const listener = await trial.sh('stty raw -echo; echo ready; cat', { tty: true });
    await listener.see('ready');
    for (let round = 0; round < 10; round += 1) {
      const deaf = await trial.sh('stty raw -echo; echo ready; sleep 600', { tty: true });
      await deaf.see('ready');
      const queued = deaf.handle.write(Buffer.alloc(256 * 1024, 'Z'));
      queued.catch(() => undefined);
      await until(async () => (await acceptedOf(deaf)) > 0, 'input to be queued');
      await deaf.handle.terminate();
      // Its descriptor is free now, and the next terminal likely gets the number.
      await deaf.handle.wait();
      const next = await trial.sh('stty raw -echo; echo ready; cat', { tty: true });
      await next.see('ready');
      await next.handle.write(`mine${round}.`);
      await next.see(`mine${round}.`);
      expect(next.text).not.toContain('Z');
      await next.handle.terminate();
      await next.over;
      await deaf.over;
      await queued.catch(() => undefined);
    }
    await listener.handle.write('last');
    await listener.see('last');
    expect(listener.text).not.toContain('Z');
    await listener.handle.terminate();
  });
});
