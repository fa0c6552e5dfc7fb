/**
 * Paths on the wire (`file:` URIs of this host, and absolute paths) to native paths and back. A native path is a string of
 * bytes: names of files need not be UTF-8.
 */
import { Buffer } from 'node:buffer';
import { WireError } from '@exec-server/protocol';

declare const brand: unique symbol;

/** An absolute path, one character a byte (0 to 255), without trailing slash. Text operations work on it byte by byte. */
export type BytePath = string & { readonly [brand]: 'BytePath' };

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/;

/**
 * The path a wire path means. Percent escapes are bytes; `.` and `..` are resolved lexically, as the base protocol does.
 * Throws WireError `invalidPath`, or `foreignPath` for a path of another host, with `data.field`.
 */
export function bytePath(wirePath: string, field: string): BytePath {
  const invalid = (message: string): WireError => new WireError('invalidPath', message, { field, path: wirePath });
  if (wirePath.startsWith('/')) {
    if (wirePath.includes('\0')) throw invalid(`'${wirePath}' is invalid on 'linux'`);
    return resolveDots(toBytes(wirePath));
  }
  const scheme = SCHEME.exec(wirePath)?.[1];
  if (scheme === undefined) throw invalid('invalid URI: relative URL without a base');
  if (scheme.toLowerCase() !== 'file') throw invalid(`unsupported path URI scheme \`${scheme.toLowerCase()}\``);
  if (wirePath.includes('#')) throw invalid('fragments are not allowed in path URIs');
  if (wirePath.includes('?')) throw invalid('query parameters are not allowed in path URIs');
  const { host, path } = splitHost(wirePath.slice(scheme.length + 1));
  if (host.includes('@'))
    throw invalid(`user names are not allowed in path URIs: \`${host.slice(0, host.indexOf('@'))}\``);
  if (host !== '' && host.toLowerCase() !== 'localhost') throw foreign(wirePath, field);
  if (/^\/[A-Za-z]:(\/|$)/.test(path)) throw foreign(wirePath, field);
  const decoded = percentDecode(path);
  if (decoded.includes('\0')) throw invalid(`'${wirePath}' is invalid on 'linux'`);
  return resolveDots(decoded === '' ? '/' : decoded);
}

/** The same as text, for what takes only text: a working directory. A path that is not UTF-8 is refused. */
export function nativePath(wirePath: string, field: string): string {
  const bytes = bytePath(wirePath, field);
  const text = pathText(bytes);
  if (toBytes(text) === bytes) return text;
  throw new WireError('invalidPath', `invalid URI: '${wirePath}' is not UTF-8 after percent decoding`, {
    field,
    path: wirePath,
  });
}

/** What the host's calls take. */
export function nativeBytes(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1');
}

/** For people and for error texts; bytes that are not UTF-8 show as the replacement character. */
export function pathText(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}

/** Whether the text of it is the path again. */
export function isUtf8(path: string): boolean {
  return toBytes(pathText(path)) === path;
}

/** Of an absolute path of the host, as text or as bytes. */
export function pathOf(native: string | Buffer): BytePath {
  // Absolute by contract; what the brand promises beside that is made here.
  const bytes = typeof native === 'string' ? toBytes(native) : native.toString('latin1');
  return stripSlash(bytes) as BytePath;
}

/** The `file:` URI of a path; bytes that are not UTF-8 stay as escapes, so that it can be sent back. */
export function pathUri(path: BytePath): string {
  const encoded = path.replace(/[^A-Za-z0-9\-_.!~*'()$&+,:=@/]/g, (byte) => {
    const code = byte.charCodeAt(0).toString(16).toUpperCase();
    return code.length === 1 ? `%0${code}` : `%${code}`;
  });
  return `file://${encoded}`;
}

/** The `file:` URI of an absolute path of the host. */
export function fileUri(path: string): string {
  return pathUri(pathOf(path));
}

/** `name`: bytes of one name, or of several with slashes between them. */
export function joinPath(folder: BytePath, name: string): BytePath {
  return (folder === '/' ? `/${name}` : `${folder}/${name}`) as BytePath;
}

/** Of `/` it is `/`. */
export function parentOf(path: BytePath): BytePath {
  const slash = path.lastIndexOf('/');
  return (slash <= 0 ? '/' : path.slice(0, slash)) as BytePath;
}

/** The bytes behind the last slash; empty for `/`. */
export function nameOf(path: BytePath): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Whether `path` is `folder` or lies below it, as the paths are written. */
export function isWithin(folder: BytePath, path: BytePath): boolean {
  if (!path.startsWith(folder)) return false;
  return path.length === folder.length || folder === '/' || path[folder.length] === '/';
}

/** The bytes of a text, one character a byte. */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function foreign(uri: string, field: string): WireError {
  const text = `'${uri}' is invalid on 'linux'`;
  if (field !== 'cwd') return new WireError('foreignPath', text, { field, path: uri });
  const message = `cwd URI \`${uri}\` is not valid on this exec-server host: ${text}`;
  return new WireError('invalidPath', message, { field, path: uri });
}

function splitHost(rest: string): { host: string; path: string } {
  if (!rest.startsWith('//')) return { host: '', path: rest.startsWith('/') ? rest : `/${rest}` };
  const slash = rest.indexOf('/', 2);
  return slash < 0 ? { host: rest.slice(2), path: '/' } : { host: rest.slice(2, slash), path: rest.slice(slash) };
}

/** To bytes; a percent sign without two digits behind it stands for itself. */
function percentDecode(path: string): string {
  return toBytes(path).replace(/%([0-9A-Fa-f]{2})/g, (_escape, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

function resolveDots(path: string): BytePath {
  if (!/\/\.{1,2}(\/|$)|\/\//.test(path)) return stripSlash(path) as BytePath;
  const kept: string[] = [];
  for (const segment of path.split('/').slice(1)) {
    if (segment === '..') kept.pop();
    else if (segment !== '.' && segment !== '') kept.push(segment);
  }
  return `/${kept.join('/')}` as BytePath;
}

function stripSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
