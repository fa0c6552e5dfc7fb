import { createHostPlatform } from '@exec-server/server';
import { describe, expect, it } from 'vitest';
import { processBodies } from '../support/bodies/processBodies.js';
import { subjects } from '../support/bodies/subject.js';
import { join } from '../support/links.js';

describe.each(subjects)('processes over $name', processBodies);

describe('a host without signals', () => {
  it('answers a signal with signalUnsupported and still terminates', async () => {
    const host = createHostPlatform();
    const joined = await join('memory', {
      server: { platform: { signals: [], spawn: host.spawn.bind(host), close: () => host.close() } },
    });
    const handle = await joined.client.start({ argv: ['sleep', '600'] });
    await expect(handle.signal('SIGINT')).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'signalUnsupported' },
    });
    expect(await handle.terminate()).toEqual({ running: true });
    await handle.closed();
    await joined.expectClean();
  });
});
