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
  if (host === undefined || port > 65_535 || (match?.[2] !== undefined && !isIpv4(host))) {
    throw usage(`--listen ${text}: expected stdio, or ws://IP:PORT with a literal address such as ws://127.0.0.1:0`);
  }
  return { kind: 'websocket', host, port };
}

function isIpv4(host: string): boolean {
  return IPV4.test(host) && host.split('.').every((part) => Number(part) <= 255);
}

/** A whole number from `least`. */
export function parseWhole(flag: string, text: string, least: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value) || value < least)
    throw usage(`${flag} ${text}: expected a whole number from ${least}`);
  return value;
}

/** Whether clients may make http requests; undefined where neither flag was given, and where they come from decides. */
export function httpChoice(allowed: boolean, refused: boolean): boolean | undefined {
  if (allowed && refused) throw usage('--allow-http and --no-http contradict each other; pass one of them');
  return allowed || refused ? allowed : undefined;
}

/** `NAME=VALUE`; the value may be empty and may hold `=`. */
export function parseEnvPair(text: string): readonly [string, string] {
  const equals = text.indexOf('=');
  if (equals <= 0) throw usage(`--env ${text}: expected NAME=VALUE`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

/** A `ws:` or `wss:` address to connect to. */
export function parseServerUrl(text: string): string {
  if (!URL.canParse(text)) throw usage(`--url ${text}: expected an address such as ws://127.0.0.1:7000`);
  if (!isServerUrl(text)) throw usage(`--url ${text}: expected ws:// or wss://`);
  return text;
}

export function isServerUrl(text: string): boolean {
  return URL.canParse(text) && ['ws:', 'wss:'].includes(new URL(text).protocol);
}
