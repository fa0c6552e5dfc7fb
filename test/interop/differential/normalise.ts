/** Takes out of what was seen what may differ between two good servers: places, times, and the order a folder is read in. Pure. */
import { pathToFileURL } from 'node:url';
import type { Conversation, Seen } from './step.js';

export function normalised({ seen, folder }: Conversation): readonly Seen[] {
  const places: Places = [
    [pathToFileURL(folder).href, '$URI'],
    [folder, '$PATH'],
  ];
  return seen.map((seen) => {
    const plain = 'result' in seen ? { ...seen, result: withoutChance(seen.result) } : seen;
    // Replacing texts leaves the kind as it is.
    return mapped(plain, places) as Seen;
  });
}

type Places = readonly (readonly [from: string, to: string])[];

function mapped(value: unknown, places: Places): unknown {
  if (typeof value === 'string') return places.reduce((text, [from, to]) => text.replaceAll(from, to), value);
  if (Array.isArray(value)) return value.map((item: unknown) => mapped(item, places));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapped(item, places)]));
}

function withoutChance(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result;
  const rest: Record<string, unknown> = { ...result };
  for (const time of ['createdAtMs', 'modifiedAtMs']) {
    if (typeof rest[time] === 'number') rest[time] = 'a time';
  }
  // A matter of the file system.
  if (rest['isDirectory'] === true) delete rest['size'];
  if (Array.isArray(rest['entries'])) rest['entries'] = byName(rest['entries'] as readonly Entry[]);
  if (Array.isArray(rest['headers'])) rest['headers'] = byHeader(rest['headers'] as readonly Header[]);
  if (Array.isArray(rest['chunks'])) rest['chunks'] = textByStream(rest['chunks'] as readonly Chunk[]);
  return rest;
}

interface Entry {
  readonly fileName?: string;
}

/** `fs/readDirectory` has the order of the host; that of `fs/walk` is promised and stays. */
function byName(entries: readonly Entry[]): readonly Entry[] {
  if (entries.some(({ fileName }) => fileName === undefined)) return entries;
  return [...entries].sort((a, b) => ((a.fileName ?? '') < (b.fileName ?? '') ? -1 : 1));
}

interface Header {
  readonly name: string;
}

/** Those of the http connection, which is each server's own. */
const ofConnection = new Set(['connection', 'keep-alive']);

/** The order of values of one name matters; of names, the reference changes it where it takes some out. */
function byHeader(headers: readonly Header[]): readonly Header[] {
  const own = headers.filter(({ name }) => !ofConnection.has(name));
  return own.sort((a, b) => Number(a.name > b.name) - Number(a.name < b.name));
}

interface Chunk {
  readonly stream: string;
  readonly chunk: string;
}

/** How the numbers of two streams and of the exit fall is chance. */
function textByStream(chunks: readonly Chunk[]): unknown {
  const text = ({ stream, chunk }: Chunk): [string, string] => [
    stream,
    Buffer.from(chunk, 'base64').toString('latin1'),
  ];
  return chunks.map(text).sort(([a], [b]) => (a < b ? -1 : 1));
}
