/** Plain HTTP requests to a listener of the server, upgrades among them. */
import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { type BearerJwt, type JsonObject, type Probe, textOf } from './transcript.js';

export interface ProbeContext {
  readonly url: string;
  /** The key tokens are signed with. */
  readonly secret: string;
}

/** What was recorded, and what came. */
export async function probe(
  { request: asked, response: told }: Probe,
  { url, secret }: ProbeContext,
): Promise<{ readonly expected: JsonObject; readonly actual: JsonObject }> {
  const headers = Object.fromEntries(
    Object.entries(asked.headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : sign(value, secret),
    ]),
  );
  const upgrade = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': Buffer.alloc(16, 1).toString('base64'),
  };
  const { hostname, port } = new URL(url);
  const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = request({
      hostname,
      port,
      method: asked.method,
      path: asked.path,
      headers: asked.upgrade === true ? { ...upgrade, ...headers } : headers,
      agent: false,
    });
    sent.once('error', reject);
    sent.once('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      resolve({ status: statusCode ?? 0, body: '' });
    });
    sent.once('response', (response) => {
      response
        .toArray()
        .then(
          (parts) => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts as Buffer[]).toString() }),
          reject,
        );
    });
    sent.end();
  });
  return { expected: { status: told.status, body: told.body ?? '' }, actual: { ...answer } };
}

function sign({ bearerJwt: { alg, claims, key } }: BearerJwt, secret: string): string {
  const now = Math.floor(Date.now() / 1000);
  const timed = Object.entries(claims).map(([name, value]): [string, unknown] => {
    const offset = /^<NOW([+-]\d+)>$/.exec(textOf(value))?.[1];
    return [name, offset === undefined ? value : now + Number(offset)];
  });
  const encode = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const text = `${encode({ alg, typ: 'JWT' } satisfies JsonObject)}.${encode(Object.fromEntries(timed))}`;
  if (alg === 'none') return `Bearer ${text}.`;
  const digest = createHmac(alg.replace('HS', 'sha'), key === 'secret' ? secret : key);
  return `Bearer ${text}.${digest.update(text).digest('base64url')}`;
}
