import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { faultyStdio, type FaultStdioOptions } from './faultStdio.js';
import { seededRandom } from './random.js';

/** A server that says back what it is told. */
function echoOf(options: FaultStdioOptions = {}) {
  const stdin = new PassThrough();
  const stdout = stdin.pipe(new PassThrough());
  return { server: { stdin, stdout }, faulty: faultyStdio({ stdin, stdout }, options) };
}

test('passes everything exactly, at any split, and the end after it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 5000 }),
      fc.integer({ min: 1, max: 900 }),
      async (bytes, splitBytes) => {
        const { faulty } = echoOf({ shape: { up: { splitBytes }, down: { splitBytes: splitBytes * 2 } } });
        faulty.stdin.end(bytes);
        expect(await buffer(faulty.stdout)).toEqual(Buffer.from(bytes));
        expect(faulty.bytesDown).toBe(bytes.length);
        faulty.close();
      },
    ),
    { numRuns: 30 },
  );
});

test('cuts before the line that matches', async () => {
  const { faulty, server } = echoOf({
    rules: [
      { when: { direction: 'down', beforeMessage: (line) => line === 'three' }, do: { type: 'cut', hard: false } },
    ],
  });
  faulty.stdin.on('error', () => {});
  faulty.stdin.write('one\ntwo\nthree\nfour\n');
  expect(await text(faulty.stdout)).toBe('one\ntwo\n');
  expect(server.stdout.destroyed).toBe(true);
  expect(faulty.stdin.destroyed).toBe(true);
});

test('a hard cut breaks both pipes without an end', async () => {
  const { faulty, server } = echoOf();
  let ended = false;
  faulty.stdout.on('end', () => {
    ended = true;
  });
  faulty.cut();
  await once(faulty.stdout, 'close');
  expect(ended).toBe(false);
  expect([server.stdin.destroyed, server.stdout.destroyed, faulty.stdin.destroyed]).toEqual([true, true, true]);
});

test('a pipe that breaks at one side breaks at the other, unless there is silence', async () => {
  const broken = echoOf();
  broken.server.stdout.destroy();
  await once(broken.faulty.stdout, 'close');
  broken.faulty.stdin.destroy();
  await once(broken.server.stdin, 'close');

  const silent = echoOf();
  silent.faulty.silence();
  silent.faulty.stdin.destroy();
  await once(silent.faulty.stdin, 'close');
  expect(silent.server.stdin.destroyed).toBe(false);
  silent.faulty.close();
  expect(silent.server.stdin.destroyed).toBe(true);
});

test('a stall stops the writer and a release delivers everything in order', async () => {
  const { faulty } = echoOf();
  const bytes = Buffer.from(
    Array.from(
      { length: 500_000 },
      (
        (random) => () =>
          random.integer(256)
      )(seededRandom(3)),
    ),
  );
  faulty.stall('up');
  let taken = 0;
  while (taken < bytes.length) {
    const chunk = bytes.subarray(taken, taken + 10_000);
    taken += chunk.length;
    if (!faulty.stdin.write(chunk)) {
      await new Promise(setImmediate);
      if (faulty.stdin.writableNeedDrain) break;
    }
  }
  expect(taken).toBeLessThan(200_000);
  expect(faulty.bytesUp).toBe(0);
  const got = buffer(faulty.stdout);
  faulty.release();
  faulty.stdin.end(bytes.subarray(taken));
  expect((await got).equals(bytes)).toBe(true);
});
