/** Paths as callers give them ↔ the `file:` URIs that are sent. Pure. */
import { ClientError } from '../errors.js';

/**
 * Absolute path of the server's host, `file:` URI or URL. A name that is not UTF-8 has its bytes as escapes in a URI; `list`,
 * `walk` and `watch` give such a URI as the `path` of an entry.
 */
export type FilePath = string | URL;

/** Where a path stands among the arguments of a call, for the error. */
export type PathArgument = 'path' | 'source' | 'destination';

/** The URI that is sent; throws INVALID_ARGUMENT for what names no file of the server's host. */
export function wirePath(path: FilePath, argument: PathArgument = 'path'): string {
  if (path instanceof URL) return uriOf(path.href, argument);
  // Callers without types.
  if (typeof path !== 'string') throw unusable(argument, String(path), `it is no text and no URL but ${typeof path}`);
  if (path.startsWith('/')) return `file://${escapeBytes(path, argument)}`;
  if (/^file:/i.test(path)) return uriOf(path, argument);
  const given = `\`${path}\``;
  if (path === '') throw unusable(argument, path, 'it is empty');
  if (path.startsWith('~')) throw unusable(argument, path, `${given} begins with a home folder, which is not expanded`);
  const [, scheme] = /^([A-Za-z][A-Za-z0-9+.-]+):/.exec(path) ?? [];
  if (scheme !== undefined) throw unusable(argument, path, `${given} has the scheme \`${scheme}\``);
  throw unusable(argument, path, `${given} is relative, and the server has no folder it begins at`);
}

/** A path for callers: as text where it is UTF-8, else the URI it came as. Both can be given back. */
export function shownPath(wire: string): string {
  if (!/^file:\/\/\//i.test(wire)) return wire;
  try {
    return decodeURIComponent(wire.slice('file://'.length));
  } catch {
    // Its bytes are not UTF-8: no text is this path.
    return wire;
  }
}

/** The path of an entry of a folder, for callers. */
export function childPath(folder: string, name: string): string {
  const isUri = !folder.startsWith('/');
  return `${folder.endsWith('/') ? folder : `${folder}/`}${isUri ? escapeBytes(name, 'path') : name}`;
}

function uriOf(uri: string, argument: PathArgument): string {
  const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(uri) ?? [];
  if (scheme.toLowerCase() !== 'file') throw unusable(argument, uri, `\`${uri}\` has the scheme \`${scheme}\``);
  const [, host = '', path = ''] = /^(?:\/\/([^/?#]*))?(.*)$/s.exec(rest) ?? [];
  if (host.includes('@')) throw unusable(argument, uri, 'the URI has a user; files belong to the server');
  if (host !== '' && host.toLowerCase() !== 'localhost') {
    throw unusable(
      argument,
      uri,
      `the URI names the host \`${host}\`; only files of the server's own host can be named`,
    );
  }
  const [mark] = /[?#]/.exec(path) ?? [];
  if (mark !== undefined) {
    throw unusable(
      argument,
      uri,
      `the URI has a ${mark === '?' ? 'query' : 'fragment'}; in a name it is ${mark === '?' ? '%3F' : '%23'}`,
    );
  }
  if (host === '' && path !== '' && !path.startsWith('/')) throw unusable(argument, uri, `\`${uri}\` is relative`);
  const escaped = path.replace(/%(?:[0-9A-Fa-f]{2})|[^%]+|%/gs, (piece) =>
    /^%[0-9A-Fa-f]{2}$/.test(piece) ? piece : escapeBytes(piece, argument),
  );
  return `file://${escaped === '' ? '/' : escaped}`;
}

/** Everything but what stands for itself in a URI, byte by byte. */
function escapeBytes(text: string, argument: PathArgument): string {
  let escaped: string;
  try {
    escaped = encodeURIComponent(text);
  } catch {
    // The only text it refuses.
    throw unusable(argument, text, 'it has half of a surrogate pair, which no bytes stand for');
  }
  return escaped.replace(/%(24|26|2B|2C|3A|3D|40|2F)/g, (escape) => decodeURIComponent(escape));
}

function unusable(argument: PathArgument, path: string, why: string): ClientError {
  const message = `${argument} cannot be used: ${why}; pass an absolute path or a file: URI of the server's host; nothing was sent`;
  return new ClientError('INVALID_ARGUMENT', message, { argument, path });
}
