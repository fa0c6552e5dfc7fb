/** Whether an exec server answers at an address. */
import { systemClock } from './clock.js';
import { type ClientInternals, Session } from './session.js';
import { type WebSocketOptions, webSocketDialer } from './transport/websocket.js';

/** How {@link ping} asks. */
export interface PingOptions extends Omit<WebSocketOptions, 'url'> {
  /** How long the answer may take, in ms. Default 5,000. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 5_000;
/** So that the session ends with its connection also where the goodbye is lost. */
const LEASE_MS = 1;

/**
 * True when an exec server has answered `initialize` at this URL; false for everything else: no such address, a refusal,
 * a wrong token, another protocol, silence. Never rejects, ends within the timeout, and leaves no session behind.
 *
 * @example
 * ```ts
 * while (!(await ping('ws://127.0.0.1:7000', { token, timeoutMs: 1_000 }))) console.log('not there yet');
 * ```
 */
export function ping(url: string | URL, options: PingOptions = {}): Promise<boolean> {
  return pingWith(url, options, {});
}

/** With the clock of a test. */
export async function pingWith(
  url: string | URL,
  options: PingOptions | null,
  internals: ClientInternals,
): Promise<boolean> {
  const { token, timeoutMs = TIMEOUT_MS } = options ?? {};
  const { clock = systemClock } = internals;
  let answers = false;
  let late = (): void => {};
  const isLate = new Promise<void>((resolve) => (late = resolve));
  const cancel = clock.timer(timeoutMs, late);
  try {
    const wishes = { reconnect: false, connectTimeoutMs: timeoutMs, leaseMs: LEASE_MS };
    const session = new Session(webSocketDialer({ url, token }), wishes, internals);
    // A server that says nothing is not waited for to say goodbye.
    void isLate.then(() => session.abort());
    const opened = session.opened().then(() => (answers = true));
    await Promise.race([opened, isLate]);
    // Its own time is bounded as well, and goes on behind an answer that is due.
    await Promise.race([session.end('close'), isLate]);
  } catch {
    // Whatever it was, no exec server has answered.
  } finally {
    cancel();
  }
  return answers;
}
