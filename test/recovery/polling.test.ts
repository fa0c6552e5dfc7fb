/** A client that acknowledges nothing and goes by its reads, whatever it is pushed: it misses nothing after a cut. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecServer } from '@exec-server/server';
import { expect, it } from 'vitest';
import { RawPeer, startOf } from '../support/rawPeer.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const BYTES = 24 * MIB;

interface Chunk {
  readonly seq: number;
  readonly chunk: string;
}

it('what was pushed meanwhile can be read again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'polling-'));
  const server = createExecServer();
  const { url } = await server.listen();
  const first = await RawPeer.dial(url);
  const { sessionId } = await first.initialize({});
  const script = `until [ -e ${folder}/go ]; do sleep 0.01; done; head -c ${BYTES} /dev/zero`;
  await first.request('process/start', startOf('p', ['/bin/sh', '-c', script]));
  await first.cut();
  await writeFile(join(folder, 'go'), '');
  await until(() => server.gauges().spooledBytes > BYTES / 2, 'the output to go to the disk');

  let pushedBytes = 0;
  const second = await RawPeer.dial(url, {
    notification: (method, { chunk }) => {
      if (method === 'process/output') pushedBytes += Buffer.from(String(chunk), 'base64').length;
    },
  });
  await second.initialize({ resumeSessionId: sessionId });
  let afterSeq = 0;
  let exitSeen = false;
  let bytes = 0;
  for (let closed: unknown = false; closed !== true; ) {
    const reply = await second.request('process/read', { processId: 'p', afterSeq, waitMs: 1_000 });
    expect(reply['gap']).toBeUndefined();
    const chunks = reply['chunks'] as Chunk[];
    for (const { seq, chunk } of chunks) {
      // The exit has a number among those of the output, and may come before the last of it.
      if (seq === afterSeq + 2 && reply['exited'] === true && !exitSeen) {
        exitSeen = true;
        afterSeq += 1;
      }
      expect(seq).toBe((afterSeq += 1));
      bytes += Buffer.from(chunk, 'base64').length;
    }
    // This client is slow: much more is pushed, and taken by its connection, before it asks again.
    const wanted = Math.min(pushedBytes + 4 * MIB, BYTES - 5 * MIB);
    await until(() => pushedBytes >= wanted, 'more pushes');
    ({ closed } = reply);
  }
  expect(bytes).toBe(BYTES);
  await second.cut();
  await server.close();
  await rm(folder, { recursive: true });
});
