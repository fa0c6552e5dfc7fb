/** What `ls` prints. Pure. */
import { shownName, shownUri } from './operands.js';

export interface Listed {
  readonly name: string;
  /** A `file:` URI where the name is no UTF-8. */
  readonly path: string;
  readonly kind: string;
  readonly size?: number | undefined;
  readonly mode?: number | undefined;
  readonly modifiedAtMs?: number | undefined;
  readonly linkTarget?: string | undefined;
}

export interface ListingOptions {
  readonly long: boolean;
  /** Names that begin with a dot as well. */
  readonly all: boolean;
}

/** One line for each entry, in the order of the names. */
export function listing(entries: readonly Listed[], { long, all }: ListingOptions): string {
  const shown = entries.filter(({ name }) => all || !name.startsWith('.'));
  const sorted = [...shown].sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  if (!long) return sorted.map((entry) => `${nameOf(entry)}\n`).join('');
  const width = sorted.reduce((most, { size }) => Math.max(most, sizeOf(size).length), 0);
  return sorted.map((entry) => `${longLine(entry, width)}\n`).join('');
}

function longLine(entry: Listed, width: number): string {
  const { kind, mode, size, modifiedAtMs, linkTarget } = entry;
  const target = linkTarget === undefined ? '' : ` -> ${shownName(linkTarget)}`;
  const cells = [modeText(kind, mode), sizeOf(size).padStart(width), timeText(modifiedAtMs)];
  return `${cells.join('  ')}  ${nameOf(entry)}${target}`;
}

const nameOf = ({ name, path }: Listed): string => (name.includes('\ufffd') ? shownUri(path) : shownName(name));
const sizeOf = (size: number | undefined): string => (size === undefined ? '?' : String(size));

const KIND_LETTERS: Readonly<Record<string, string>> = {
  file: '-',
  directory: 'd',
  symlink: 'l',
  fifo: 'p',
  socket: 's',
  characterDevice: 'c',
  blockDevice: 'b',
};

/** As `ls -l` has it: `drwxr-xr-x`. */
export function modeText(kind: string, mode: number | undefined): string {
  const letter = KIND_LETTERS[kind] ?? '?';
  if (mode === undefined) return `${letter}?????????`;
  const bits = [0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001];
  const letters = bits.map((bit, index) => ((mode & bit) === 0 ? '-' : (['r', 'w', 'x'][index % 3] ?? '-')));
  const special = [
    [0o4000, 2, 's', 'S'],
    [0o2000, 5, 's', 'S'],
    [0o1000, 8, 't', 'T'],
  ] as const;
  for (const [bit, at, withExecute, without] of special) {
    if ((mode & bit) !== 0) letters[at] = letters[at] === 'x' ? withExecute : without;
  }
  return `${letter}${letters.join('')}`;
}

/** In universal time, to the minute: the zone of the server is not known. */
function timeText(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return '?'.padEnd(16);
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}
