import { connect, isClientError } from '@exec-server/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { httpBodies } from '../support/bodies/httpBodies.js';
import { subjects } from '../support/bodies/subject.js';
import { command, serve } from '../support/command.js';
import { HttpFixture } from '../support/httpFixture.js';
import { joinByProxy } from '../support/proxied.js';
import { until } from '../support/until.js';

let web: HttpFixture;
beforeAll(async () => {
  web = await HttpFixture.start();
});
afterAll(() => web[Symbol.asyncDispose]());

async function failure(promise: Promise<unknown>): Promise<unknown> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isClientError(error) ? { code: error.code, reason: error.data.reason } : error;
}

describe.each(subjects)('client.http over $name', httpBodies);

describe('a cut', () => {
  it('fails responses once, and leaves the session as it was', async () => {
    const joined = await joinByProxy();
    const { client, proxy } = joined;
    const response = await client.http(`${web.url}/hang-body`);
    const unanswered = failure(client.http(`${web.url}/hang`));
    await until(() => web.hanging === 2, 'both to be asked');
    proxy.cut();
    expect(await failure(response.bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'lost' });
    expect(await unanswered).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(await (await client.http(`${web.url}/hello`)).text()).toBe('hello');
    expect(web.hanging).toBe(0);
    await joined.expectClean();
  });
});

describe('exec-server --allow-http and --no-http', () => {
  it('decide who may make requests', async () => {
    for (const [flags, http] of [
      [[], true],
      [['--no-http'], false],
      [['--listen', 'ws://0.0.0.0:0', '--allow-unauthenticated'], false],
      [['--listen', 'ws://0.0.0.0:0', '--allow-unauthenticated', '--allow-http'], true],
    ] as const) {
      const server = await serve(...flags);
      const client = await connect({ url: server.url.replace('0.0.0.0', '127.0.0.1') });
      expect([flags, client.serverInfo?.http]).toEqual([flags, http]);
      expect(client.environmentInfo.capabilities?.['httpHeaderEnvVars']).toBe(http);
      if (http) expect((await client.http(`${web.url}/hello`)).status).toBe(200);
      else expect(await failure(client.http(`${web.url}/hello`))).toMatchObject({ code: 'NOT_SUPPORTED' });
      await client.close();
      await server.stop();
    }
  });

  it('are explained, and contradict each other', async () => {
    const { stdout } = await command(['--help']);
    expect(stdout).toContain('--allow-http');
    expect(stdout).toContain('--no-http');
    const both = await command(['--listen', 'stdio', '--allow-http', '--no-http']);
    expect(both).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('contradict each other') as unknown });
  });
});
