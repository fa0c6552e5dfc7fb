/** Paths of the command line: which side they are on, and how names are shown. Pure. */
import { CommandError, ExitCode } from './exitCodes.js';

export interface Operand {
  /** As it was given. */
  readonly text: string;
  readonly side: 'local' | 'remote';
  /** Without the prefix. */
  readonly path: string;
}

const PREFIX = 'remote:';

/** `remote:/srv/file`, or a path of this host; one that begins with these letters is written `./remote:…`. */
export function parseOperand(text: string): Operand {
  if (!text.startsWith(PREFIX)) {
    if (text === '')
      throw new CommandError('a path is empty; write . for the folder a command begins in', ExitCode.usage);
    return { text, side: 'local', path: text };
  }
  return { text, side: 'remote', path: text.slice(PREFIX.length) };
}

/** For commands whose paths are all of the server: the prefix may be there, and says nothing new. */
export function parseRemote(text: string): Operand {
  if (text === '')
    throw new CommandError('a path is empty; write . for the folder a command begins in', ExitCode.usage);
  return { text, side: 'remote', path: text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text };
}

/** The absolute path or `file:` URI of an operand of the server, whose working directory `cwd` is one itself. */
export function remotePath(path: string, cwd: string): string {
  if (path.startsWith('/') || /^file:/i.test(path)) return path;
  const base = cwd.endsWith('/') ? cwd : `${cwd}/`;
  return `${base}${/^file:/i.test(cwd) ? encodeURIComponent(path).replaceAll('%2F', '/') : path}`;
}

/** Whether the contents of a folder are meant and not the folder itself, as `cp -r folder/. there` has it. */
export function meansContents(path: string): boolean {
  return /(^|\/)\.\/*$/.test(path) || /(^|\/)\.\.\/*$/.test(path);
}

/** A name on one line of a terminal, whatever is in it; `\` too is escaped, so that each name has one form. */
export function shownName(name: string): string {
  // Control characters, the marks that turn the direction of writing, and those no font has.
  return name.replace(/[\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    const short = SHORT_ESCAPES[character];
    if (short !== undefined) return short;
    const code = character.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`;
  });
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The same for a name that is no UTF-8, by the `file:` URI it can be named with. */
export function shownUri(uri: string): string {
  const last = uri.slice(uri.lastIndexOf('/') + 1);
  const pieces = last.split(/((?:%[0-9A-Fa-f]{2})+)/);
  return pieces.map((piece) => (piece.startsWith('%') ? shownEscapes(piece) : shownName(piece))).join('');
}

function shownEscapes(escapes: string): string {
  try {
    return shownName(decodeURIComponent(escapes));
  } catch {
    // No UTF-8: the bytes themselves.
    return escapes.toLowerCase().replaceAll('%', '\\x');
  }
}
