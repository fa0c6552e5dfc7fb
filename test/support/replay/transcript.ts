/** A recorded conversation as it is in its file. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

/** A member that is text in every message that has it; anything else shows as JSON. */
export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

export interface Send {
  readonly dir: 'send';
  readonly conn?: string;
  readonly msg?: JsonObject;
  /** The exact text, where it is no JSON message. */
  readonly raw?: string;
  readonly gen?: { readonly prefix: string; readonly repeat: string; readonly times: number; readonly suffix: string };
  readonly binary?: boolean;
  /** Without the end of the line. */
  readonly partial?: boolean;
}

interface Recv {
  readonly dir: 'recv';
  readonly conn?: string;
  readonly msg: JsonObject;
}

export interface Probe {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string | BearerJwt>>;
    readonly upgrade?: boolean;
  };
  readonly response: { readonly status: number; readonly body?: string };
}

/** A token that has to be signed. */
export interface BearerJwt {
  readonly bearerJwt: { readonly alg: string; readonly claims: JsonObject; readonly key: string };
}

export type Control = { readonly dir: 'ctl'; readonly conn?: string } & (
  | { readonly op: 'open' | 'abort' | 'close' | 'end-input' }
  | { readonly op: 'sleep'; readonly ms: number }
  | { readonly op: 'ignore'; readonly method: string }
  | { readonly op: 'closed-by-server' | 'exited' | 'server-exit'; readonly code: number }
  | { readonly op: 'signal-server'; readonly signal: NodeJS.Signals }
  | ({ readonly op: 'http' } & Probe)
);

export type Line = Send | Recv | Control;

export interface Header {
  readonly scenario: string;
  readonly transport: 'ws' | 'stdio';
  readonly notes: string;
  readonly serverArgs?: readonly string[];
  readonly serverEnv?: Readonly<Record<string, string>>;
  /** Files to be there before the server starts: path → content. */
  readonly files?: Readonly<Record<string, string>>;
  readonly httpFixture?: Readonly<Record<string, string>>;
  /** What the host has to have. */
  readonly needs?: string;
  /** Present where the lines say which connection they are about. */
  readonly connections?: string;
}

export interface Transcript {
  readonly header: Header;
  readonly lines: readonly Line[];
}

const folder = fileURLToPath(new URL('../../conformance/transcripts/', import.meta.url));

/** The names of all transcripts, such as `080-fs-basic`, in order. */
export function transcriptNames(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => name.slice(0, -'.jsonl'.length))
    .sort();
}

export function readTranscript(name: string): Transcript {
  const text = readFileSync(`${folder}${name}.jsonl`, 'utf8');
  const [header, ...lines] = text.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line)]));
  // The files are part of the tests; their README describes these shapes.
  return { header: header as Header, lines: lines as Line[] };
}
