/** Paths and names as strings of bytes, one character a byte: names of files need not be UTF-8. Pure. */

const encoder = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder('utf-8', { ignoreBOM: true });

const codesOf = (bytes: string): Uint8Array => Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));

/** The bytes of a text. */
export function bytesOf(text: string): string {
  // Most names are ASCII, whose bytes are its characters.
  if (/^[\0-\x7f]*$/.test(text)) return text;
  let bytes = '';
  for (const code of encoder.encode(text)) bytes += String.fromCharCode(code);
  return bytes;
}

/** The text of bytes; undefined where they are no UTF-8. */
export function textOf(bytes: string): string | undefined {
  if (/^[\0-\x7f]*$/.test(bytes)) return bytes;
  try {
    return strict.decode(codesOf(bytes));
  } catch {
    // What `fatal` throws for is the answer.
    return undefined;
  }
}

/** For people and for error texts; bytes that are no UTF-8 show as the replacement character. */
export function shownBytes(bytes: string): string {
  return lossy.decode(codesOf(bytes));
}

/** The `file:` URI of an absolute path. */
export function uriOf(path: string): string {
  const encoded = path.replace(/[^A-Za-z0-9\-_.!~*'()$&+,:=@/]/g, (byte) => {
    return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
  return `file://${encoded}`;
}

/** The bytes of an absolute path or `file:` URI as a server sends it; undefined for anything else. */
export function bytesOfWire(path: string): string | undefined {
  if (path.startsWith('/')) return bytesOf(path);
  const rest = /^file:(?:\/\/(?:localhost)?(?=\/)|(?!\/\/))(\/.*)$/is.exec(path)?.[1];
  return rest === undefined
    ? undefined
    : bytesOf(rest).replace(/%([0-9A-Fa-f]{2})/g, (_escape, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 16)),
      );
}

/** An absolute path without `.`, `..` and empty parts, as a server resolves it; a slash at its end stays. */
export function withoutDots(path: string): string {
  const kept: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') kept.pop();
    else if (part !== '.' && part !== '') kept.push(part);
  }
  return kept.length > 0 && path.endsWith('/') ? `/${kept.join('/')}/` : `/${kept.join('/')}`;
}

/** `name` empty: the folder itself. */
export function joinBytes(folder: string, name: string): string {
  if (name === '') return folder;
  return folder === '' || folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`;
}

/** The bytes behind the last slash, one at the end aside; empty for `/`. */
export function baseName(path: string): string {
  const bare = withoutSlash(path);
  return bare.slice(bare.lastIndexOf('/') + 1);
}

/** Of a relative name without slash it is the empty name. */
export function parentName(path: string): string {
  const bare = withoutSlash(path);
  const slash = bare.lastIndexOf('/');
  if (slash === 0) return '/';
  return slash < 0 ? '' : bare.slice(0, slash);
}

export function withoutSlash(path: string): string {
  return /^\/+$/.test(path) ? '/' : path.replace(/\/+$/, '');
}

/** Whether it can be the name of one entry of a folder. */
export function isEntryName(bytes: string): boolean {
  return bytes !== '' && bytes !== '.' && bytes !== '..' && !/[/\0]/.test(bytes);
}
