/** Where a source lands, by the rules of `cp`. Pure. */
import { baseName, joinBytes, withoutSlash } from './bytePath.js';

export interface LandingWish {
  readonly source: { readonly kind: 'file' | 'directory'; readonly path: string };
  readonly destination: {
    /** As it was given; a slash at its end says that a folder is meant. */
    readonly path: string;
    readonly found: 'missing' | 'directory' | 'other';
  };
  /** A folder lands in an existing folder under its own name; without it the contents merge. */
  readonly includeParent: boolean;
  readonly overwrite: boolean;
}

export type Landing =
  | {
      readonly ok: true;
      /** The path the source gets. */
      readonly path: string;
      /** A folder that has to be made first, with its parents. */
      readonly makeFolder?: string;
    }
  | { readonly ok: false; readonly code: 'EEXIST' | 'ENOTDIR' | 'EISDIR'; readonly path: string };

/** Paths are strings of bytes. */
export function landingOf({ source, destination, includeParent, overwrite }: LandingWish): Landing {
  const path = withoutSlash(destination.path);
  const meansFolder = destination.path.endsWith('/');
  const name = baseName(source.path);
  if (destination.found === 'other' && (meansFolder || source.kind === 'directory')) {
    return { ok: false, code: 'ENOTDIR', path };
  }
  if (source.kind === 'directory') {
    return { ok: true, path: includeParent && destination.found === 'directory' ? joinBytes(path, name) : path };
  }
  if (destination.found === 'directory') return { ok: true, path: joinBytes(path, name) };
  if (meansFolder) return { ok: true, path: joinBytes(path, name), makeFolder: path };
  if (destination.found === 'other' && !overwrite) return { ok: false, code: 'EEXIST', path };
  return { ok: true, path };
}
