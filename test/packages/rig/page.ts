/** A page in a real browser, served on loopback. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import type * as clientModule from '@exec-server/client';
import { type Browser, chromium, type Page } from 'playwright-core';

const EXECUTABLE = process.env['EXEC_SERVER_CHROMIUM'] ?? onPath('chromium') ?? '/usr/bin/chromium';
declare global {
  /** In the page: the client's module. */
  var execServerClient: typeof clientModule;
}

/** Not a name of this machine to the browser, so that the page has what pages by plain http have, and no more. */
const HOST = 'page.test';
/** Where a browser has to be there, its absence fails. */
export const hasBrowser = existsSync(EXECUTABLE) || process.env['EXEC_SERVER_BROWSER'] === 'required';

function onPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

export interface OpenPage {
  readonly origin: string;
  readonly page: Page;
  close(): Promise<void>;
}

/** An empty page in which `execServerClient` is the code. */
export async function openPage(code: string): Promise<OpenPage> {
  const files = createServer((request, response) => {
    const isCode = request.url === '/client.js';
    response.writeHead(200, { 'content-type': isCode ? 'text/javascript' : 'text/html' });
    response.end(isCode ? code : '<!doctype html><title>page</title>');
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  const origin = `http://${HOST}:${(files.address() as AddressInfo).port}`;
  let browser: Browser | undefined;
  const close = async (): Promise<void> => {
    await browser?.close();
    files.closeAllConnections();
    await new Promise<void>((resolve) => files.close(() => resolve()));
  };
  try {
    browser = await chromium.launch({
      executablePath: EXECUTABLE,
      // Root may not use the sandbox; the rest keeps the browser from calling out.
      args: [
        `--host-resolver-rules=MAP ${HOST} 127.0.0.1`,
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    });
    const page = await browser.newPage();
    await page.goto(origin);
    const content = "import * as client from '/client.js'; globalThis.execServerClient = client;";
    await page.addScriptTag({ type: 'module', content });
    await page.waitForFunction('globalThis.execServerClient !== undefined');
    return { origin, page, close };
  } catch (error) {
    await close();
    throw error;
  }
}
