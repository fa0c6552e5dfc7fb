/** Names inside of archives: what of them can be packed, and where below a folder they lead. Pure. */
import { WireError } from '@exec-server/protocol';
import { type BytePath, isUtf8, pathText, pathUri, toBytes } from '../../paths.js';

/** What a decoder makes of bytes that are not UTF-8. */
const REPLACEMENT = '\uFFFD';

/** The text of a name, or of the target of a link, for an archive. `path` is where it was found. */
export function packedText(bytes: string, path: BytePath): string {
  if (isUtf8(bytes)) return pathText(bytes);
  throw new WireError(
    'invalidArgument',
    `${pathUri(path)} has a name that is not UTF-8, which an archive cannot hold`,
    {
      path: pathUri(path),
    },
  );
}

/** The parts of a name a client asks to be packed. */
export function wantedParts(name: string): string[] {
  const parts = partsOf(name);
  if (parts !== undefined && parts.length > 0) return parts.map(toBytes);
  throw new WireError('invalidArgument', `\`${name}\` names nothing below the folder`, { field: 'names', path: name });
}

/** The parts of the name of an entry; none for the folder itself. `as` is the entry that is spoken of. */
export function entryParts(name: string, as: string = name): string[] {
  const parts = partsOf(name);
  if (parts === undefined)
    throw badEntry(as, name === as ? 'lies outside the folder' : `links to \`${name}\`, outside the folder`);
  return parts.map((part) => entryBytes(part, as));
}

/** The bytes of a name in an archive. The decoder has made text of it; what was no text it cannot give back. */
export function entryBytes(text: string, as: string): string {
  if (text.includes(REPLACEMENT)) throw badEntry(as, 'has a name that is not UTF-8');
  return toBytes(text);
}

export function badEntry(entry: string, what: string): WireError {
  return new WireError('badArchive', `the entry \`${entry}\` ${what}`, { path: entry });
}

/** Undefined for what leads out. */
function partsOf(name: string): string[] | undefined {
  if (name.startsWith('/') || name.includes('\0')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? undefined : parts;
}
