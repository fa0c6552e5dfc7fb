import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { capabilityToken, createExecServer, type ExecServer } from '@exec-server/server';
import { type FaultProxy, startFaultProxy } from '@exec-server/testing';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.js';
import { type Bundle, bundleClient } from './rig/bundle.js';
import { hasBrowser, type OpenPage, openPage } from './rig/page.js';
import { root } from './rig/workspace.js';

/** How far a size may be from what the README says before the README has to be corrected. */
const TOLERANCE = 0.05;
const TOKEN = 'tökən with blanks/and+signs, long enough';

let bundle: Bundle;
beforeAll(async () => {
  bundle = await bundleClient();
});

describe('the client for browsers', () => {
  it('is one file that needs nothing else, and nothing of Node', () => {
    expect(bundle.external).toEqual([]);
    expect(/["'`]node:[\w/]+["'`]/.exec(bundle.code)).toBeNull();
  });

  it('has the size that the README says', async () => {
    const readme = await readFile(join(root, 'README.md'), 'utf8');
    const [, minified, gzipped] = /(\d+) KB minified, (\d+) KB gzipped/.exec(readme) ?? [];
    expect([bundle.minifiedBytes, bundle.gzippedBytes].map((bytes) => Math.round(bytes / 1000))).toEqual(
      [minified, gzipped].map(
        (stated) =>
          expect.toSatisfy((kilobytes: number) => Math.abs(kilobytes / Number(stated) - 1) <= TOLERANCE) as unknown,
      ),
    );
  });
});

describe.runIf(hasBrowser)('a page', () => {
  let opened: OpenPage | undefined;
  let server: ExecServer | undefined;
  let proxy: FaultProxy | undefined;
  afterEach(async () => {
    await opened?.close();
    await proxy?.close();
    await server?.close();
    opened = server = proxy = undefined;
  });

  async function serve(allowedOrigins: readonly string[]): Promise<string> {
    server = createExecServer();
    const { url } = await server.listen({ authenticate: capabilityToken(TOKEN), allowedOrigins });
    proxy = await startFaultProxy({
      target: url,
      rules: [{ when: { direction: 'down', aboutEveryBytes: 100_000 }, do: 'cut', times: 3 }],
      seed: 7,
    });
    return proxy.url;
  }

  it('runs a command with its token through cuts, and gets every byte once and in order', async () => {
    opened = await openPage(bundle.code);
    const url = await serve([opened.origin]);
    const seen = await opened.page.evaluate(
      async ([address, token]) => {
        const { connect } = globalThis.execServerClient;
        const states: string[] = [];
        const client = await connect({ url: address, token, onState: (state) => void states.push(state) });
        const result = await client.run(['seq', '100000']);
        await client.close();
        return {
          text: result.text(),
          exitCode: result.exitCode,
          states,
          isSecure: (globalThis as { readonly isSecureContext?: boolean }).isSecureContext,
        };
      },
      [url, TOKEN] as const,
    );
    expect(seen).toMatchObject({ exitCode: 0, isSecure: false });
    expect(seen.text).toBe(Array.from({ length: 100_000 }, (_, at) => `${at + 1}\n`).join(''));
    expect(seen.states.filter((state) => state === 'recovering').length).toBeGreaterThan(0);
    expect(proxy?.counters.cuts).toBe(3);
    expect(server?.gauges()).toMatchObject({ sessions: 0 });
    // The close of a page is the browser's, and takes its own time.
    await until(() => server?.gauges().connections === 0, 'the connection to end');
  });

  it('is done with a server that says nothing more long before the browser is', async () => {
    opened = await openPage(bundle.code);
    server = createExecServer();
    const { url } = await server.listen({ allowedOrigins: [opened.origin] });
    proxy = await startFaultProxy({ target: url });
    await opened.page.exposeFunction('silence', () => proxy?.stall());
    const tookMs = await opened.page.evaluate(async (address) => {
      const client = await globalThis.execServerClient.connect({ url: address });
      const { silence } = globalThis as unknown as { readonly silence: () => Promise<void> };
      await silence();
      const began = performance.now();
      await client.close();
      return performance.now() - began;
    }, proxy.url);
    // It waits 2 s for the goodbye and 2 s for the close; the browser waits a minute.
    expect(tookMs).toBeLessThan(30_000);
  });

  it('works with files of the server, and is told what a browser lacks', async () => {
    opened = await openPage(bundle.code);
    const url = await serve([opened.origin]);
    const seen = await opened.page.evaluate(
      async ([address, token]) => {
        const { connect, isClientError } = globalThis.execServerClient;
        const codeOf = async (action: () => Promise<unknown>): Promise<string> =>
          await action().then(
            () => 'none',
            (error: unknown) => (isClientError(error) ? error.code : String(error)),
          );
        const client = await connect({ url: address, token });
        const folder = (await client.run(['mktemp', '-d'])).text().trim();
        await client.fs.writeFile(`${folder}/greeting`, 'hello');
        const text = await client.fs.readText(`${folder}/greeting`);
        const upload = await codeOf(() => client.fs.upload('/etc', folder));
        await client.fs.remove(folder, { recursive: true });
        await client.close();
        return {
          text,
          upload,
          command: await codeOf(() => connect({ command: ['exec-server'] })),
          wrongToken: await codeOf(() => connect({ url: address, token: 'wrong' })),
        };
      },
      [url, TOKEN] as const,
    );
    expect(seen).toEqual({
      text: 'hello',
      upload: 'NOT_SUPPORTED',
      command: 'NOT_SUPPORTED',
      wrongToken: 'CONNECT_FAILED',
    });
  });

  it('of an origin that is not allowed is refused', async () => {
    opened = await openPage(bundle.code);
    const url = await serve([]);
    const message = await opened.page.evaluate(
      async ([address, token]) => {
        const { connect } = globalThis.execServerClient;
        return await connect({ url: address, token }).then(
          () => 'connected',
          (error: unknown) => String(error),
        );
      },
      [url, TOKEN] as const,
    );
    expect(message).toMatch(/--allow-origin/);
  });
});
