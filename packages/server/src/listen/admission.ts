/** Which HTTP requests reach the WebSocket: path, Origin, Host. Pure. */

export interface AdmissionRules {
  /** Origins of browsers that may connect; every other request with an `Origin` is refused with 403. Default none. */
  readonly allowedOrigins: readonly string[];
  /**
   * Host names under which the server may be addressed, besides IP addresses and `localhost`; others are refused with
   * 403. Default none.
   */
  readonly allowedHosts: readonly string[];
}

export interface RequestHead {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly origin: string | undefined;
  readonly host: string | undefined;
  readonly upgrade: boolean;
}

export type Admission =
  | { readonly kind: 'upgrade' }
  | { readonly kind: 'answer'; readonly status: number; readonly body: string };

const answer = (status: number, body = ''): Admission => ({ kind: 'answer', status, body });

export function admit(head: RequestHead, rules: AdmissionRules): Admission {
  // A web page cannot leave `Origin` out, and cannot forge `Host`: the two keep pages and rebound names away.
  if (head.origin !== undefined && !rules.allowedOrigins.includes(head.origin)) return answer(403);
  if (!isHostAllowed(head.host, rules.allowedHosts)) {
    return answer(403, `host ${head.host ?? '(none)'} is not allowed; start the server with --allow-host for it`);
  }
  const path = head.target.split('?', 1)[0];
  if (path === '/readyz') return head.method === 'GET' || head.method === 'HEAD' ? answer(200) : answer(405);
  if (path !== '/') return answer(404);
  if (head.upgrade) return { kind: 'upgrade' };
  if (head.method !== 'GET') return answer(405, 'Request method must be `GET`');
  return answer(400, "Connection header did not include 'upgrade'");
}

export function isHostAllowed(host: string | undefined, allowedHosts: readonly string[]): boolean {
  if (host === undefined) return false;
  const name = host.toLowerCase().replace(/:\d+$/, '');
  if (name === 'localhost' || name.startsWith('[') || /^\d{1,3}(\.\d{1,3}){3}$/.test(name)) return true;
  return allowedHosts.some((allowed) => allowed.toLowerCase() === name || allowed.toLowerCase() === host.toLowerCase());
}

/** Whether an address can be reached from this machine alone. */
export function isLoopback(address: string): boolean {
  // The whole of it: `127.example.org` is a name, and may lead anywhere.
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address);
}
