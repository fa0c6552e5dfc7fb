/** Proxies that the environment names, by the rules of the base protocol's server (those of reqwest). */
import { Buffer } from 'node:buffer';
import { BlockList, isIP } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Proxy {
  readonly url: URL;
  /** Value of `proxy-authorization`. */
  readonly authorization: string | undefined;
}

const PROXY_SCHEMES = /^(https?|socks4a?|socks5h?):$/;

export class Proxies {
  readonly #http: Proxy | undefined;
  readonly #https: Proxy | undefined;
  readonly #isExempt: (host: string) => boolean;

  constructor(env: Environment) {
    // A CGI program gets HTTP_PROXY from a header of its caller.
    const isCgi = env['REQUEST_METHOD'] !== undefined;
    const named = (name: string): Proxy | undefined => (isCgi ? undefined : proxyOf(valueOf(env, name)));
    const all = named('ALL_PROXY');
    this.#http = named('HTTP_PROXY') ?? all;
    this.#https = named('HTTPS_PROXY') ?? all;
    this.#isExempt = exemptions(valueOf(env, 'NO_PROXY'));
  }

  /** Undefined where the host is to be asked itself. Hosts on loopback are no exception. */
  for(url: URL): Proxy | undefined {
    const proxy = url.protocol === 'https:' ? this.#https : this.#http;
    return proxy === undefined || this.#isExempt(url.hostname.replace(/^\[|\]$/g, '')) ? undefined : proxy;
  }
}

/** In upper case first, and as it is there, even when it is empty. */
function valueOf(env: Environment, name: string): string {
  return env[name] ?? env[name.toLowerCase()] ?? '';
}

/** What names no proxy counts as nothing. */
function proxyOf(value: string): Proxy | undefined {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (!PROXY_SCHEMES.test(url.protocol) || url.hostname === '') return undefined;
  const authorization = basicAuthorization(url);
  url.username = '';
  url.password = '';
  return { url, authorization };
}

/** Commas divide; an entry is an address, a network, `*`, or a domain that stands for those below it, too. */
function exemptions(list: string): (host: string) => boolean {
  const networks = new BlockList();
  const domains: string[] = [];
  for (const entry of list.split(',').map((part) => part.trim().toLowerCase())) {
    if (entry !== '' && !addNetwork(networks, entry)) domains.push(entry);
  }
  const everything = domains.includes('*');
  return (host) => {
    const version = isIP(host);
    if (everything) return true;
    if (version !== 0) return networks.check(host, version === 6 ? 'ipv6' : 'ipv4');
    const lower = host.toLowerCase();
    return domains.some((domain) => {
      const bare = domain.replace(/^\./, '');
      return lower === bare || lower.endsWith(`.${bare}`);
    });
  };
}

function addNetwork(networks: BlockList, entry: string): boolean {
  const [address = '', bits, ...more] = entry.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) {
    networks.addAddress(address, family);
    return true;
  }
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (version === 6 ? 128 : 32)) return false;
  networks.addSubnet(address, Number(bits), family);
  return true;
}

/** User name and password of an address as the value of a header; undefined where it has none. */
export function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const bytes = Buffer.from(`${unescaped(username)}:${unescaped(password)}`, 'utf8');
  return `Basic ${bytes.toString('base64')}`;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Escapes of bytes that are no UTF-8: sent as they were written.
    return text;
  }
}
