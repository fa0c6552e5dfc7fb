/** Paths on the wire: `file:` URIs of this host, and absolute paths, to native paths. Pure. */
import { WireError } from '@exec-server/protocol';

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/;

/**
 * The absolute native path a wire path means. Percent escapes are bytes; `.` and `..` are resolved lexically, as the base
 * protocol does. Throws WireError `invalidPath` with the reason and `data.field`.
 */
export function nativePath(wirePath: string, field: string): string {
  const invalid = (message: string): WireError => new WireError('invalidPath', message, { field, path: wirePath });
  if (wirePath.startsWith('/')) {
    if (wirePath.includes('\0')) throw invalid(`'${wirePath}' is invalid on 'linux'`);
    return resolveDots(wirePath);
  }
  const scheme = SCHEME.exec(wirePath)?.[1];
  if (scheme === undefined) throw invalid('invalid URI: relative URL without a base');
  if (scheme.toLowerCase() !== 'file') throw invalid(`unsupported path URI scheme \`${scheme.toLowerCase()}\``);
  if (wirePath.includes('#')) throw invalid('fragments are not allowed in path URIs');
  if (wirePath.includes('?')) throw invalid('query parameters are not allowed in path URIs');
  const rest = wirePath.slice(scheme.length + 1);
  const { host, path } = splitHost(rest);
  if (host !== '' && host.toLowerCase() !== 'localhost') throw foreign(wirePath, field);
  if (/^\/[A-Za-z]:(\/|$)/.test(path)) throw foreign(wirePath, field);
  const decoded = percentDecode(path);
  if (decoded === undefined) throw invalid(`invalid URI: '${wirePath}' is not UTF-8 after percent decoding`);
  if (decoded.includes('\0')) throw invalid(`'${wirePath}' is invalid on 'linux'`);
  return resolveDots(decoded === '' ? '/' : decoded);
}

/** The `file:` URI of an absolute native path. */
export function fileUri(path: string): string {
  const encoded = path
    .split('/')
    .map((segment) => encodeURIComponent(segment).replace(/%(24|26|2B|2C|3A|3D|40)/g, decodeURIComponent));
  return `file://${encoded.join('/')}`;
}

function foreign(uri: string, field: string): WireError {
  const text = `'${uri}' is invalid on 'linux'`;
  const message = field === 'cwd' ? `cwd URI \`${uri}\` is not valid on this exec-server host: ${text}` : text;
  return new WireError('invalidPath', message, { field, path: uri });
}

function splitHost(rest: string): { host: string; path: string } {
  if (!rest.startsWith('//')) return { host: '', path: rest.startsWith('/') ? rest : `/${rest}` };
  const slash = rest.indexOf('/', 2);
  return slash < 0 ? { host: rest.slice(2), path: '/' } : { host: rest.slice(2, slash), path: rest.slice(slash) };
}

function percentDecode(path: string): string | undefined {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path.replace(/%(?![0-9A-Fa-f]{2})/g, '%25'));
  } catch {
    // Escapes that are no UTF-8: URIError is the only thing decodeURIComponent throws.
    return undefined;
  }
}

function resolveDots(path: string): string {
  if (!/\/\.{1,2}(\/|$)/.test(path)) return path;
  const kept: string[] = [];
  for (const segment of path.split('/').slice(1)) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return `/${kept.join('/')}`;
}
