/** Texts of the command line → values. Pure; a wrong text throws a CommandError of the usage kind. */
import { CommandError, ExitCode } from './exitCodes.js';

export type ListenTarget =
  | { readonly kind: 'stdio' }
  | { readonly kind: 'websocket'; readonly host: string; readonly port: number };

const usage = (message: string): CommandError => new CommandError(message, ExitCode.usage);

const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;

/** `stdio`, `stdio://`, or `ws://IP:PORT` with a literal address. */
export function parseListen(text: string): ListenTarget {
  if (text === 'stdio' || text === 'stdio://') return { kind: 'stdio' };
  const match = /^ws:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^/:]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || (match?.[2] !== undefined && !isIpv4(host))) {
    throw usage(`--listen ${text}: expected stdio, or ws://IP:PORT with a literal address such as ws://127.0.0.1:0`);
  }
  if (port > 65_535)
    throw usage(`--listen ${text}: there is no port ${port}; the highest is 65535, and 0 picks a free one`);
  return { kind: 'websocket', host, port };
}

function isIpv4(host: string): boolean {
  return IPV4.test(host) && host.split('.').every((part) => Number(part) <= 255);
}

/** A whole number from `least` to `most`. */
export function parseWhole(flag: string, text: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
  const bound = most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`;
  throw usage(`${flag} ${text}: expected a whole number from ${least}${bound}`);
}

/** A name that is one. */
export function parseName(flag: string, text: string): string {
  if (text === '') throw usage(`${flag}: the name is empty; leave the option out for a random one`);
  return text;
}

/** Whether clients may make http requests; undefined where neither flag was given, and where they come from decides. */
export function httpChoice(allowed: boolean, refused: boolean): boolean | undefined {
  if (allowed && refused) throw usage('--allow-http and --no-http contradict each other; pass one of them');
  return allowed || refused ? allowed : undefined;
}

/** `NAME=VALUE`; the value may be empty and may hold `=`. */
export function parseEnvPair(text: string): readonly [string, string] {
  const equals = text.indexOf('=');
  if (equals <= 0) throw usage(`--env ${text}: expected NAME=VALUE, where the value may be empty`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

/** A `ws:` or `wss:` address to connect to. */
export function parseServerUrl(text: string): string {
  if (!URL.canParse(text)) throw usage(`--url ${text}: expected an address such as ws://127.0.0.1:7000`);
  if (!isServerUrl(text)) throw usage(`--url ${text}: expected ws:// or wss://, as in ws://127.0.0.1:7000`);
  if (text.includes('#')) throw usage(`--url ${text}: leave the # out, and what follows it`);
  return text;
}

export function isServerUrl(text: string): boolean {
  return URL.canParse(text) && ['ws:', 'wss:', 'http:', 'https:'].includes(new URL(text).protocol);
}
