/**
 * The folder an archive is unpacked into. Every part of a name is looked at before something is made below it: one that is a link
 * is refused. (Whoever may write into the folder meanwhile can put a link there between the look and the use.)
 */
import { Buffer } from 'node:buffer';
import { constants, type Stats } from 'node:fs';
import { link, lutimes, mkdir, open, symlink } from 'node:fs/promises';
import type { TarHeader } from 'modern-tar';
import { type BytePath, joinPath, nativeBytes, parentOf } from '../../paths.js';
import { writeAll } from '../content.js';
import { errnoError, onPath } from '../errno.js';
import { takeFreeName } from '../freeName.js';
import { secondsOf } from '../times.js';
import { statsOf } from '../target.js';
import type { TempFiles } from '../tempFiles.js';
import { badEntry, entryBytes, entryParts } from './entryNames.js';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_DIRECTORY } = constants;

/** Not the bits that let others act as the owner: what is unpacked belongs to the server, whoever it belonged to before. */
const KEPT_MODE = 0o1777;

interface FolderWish {
  readonly mode: number | undefined;
  readonly mtime: Date | undefined;
}

export class UnpackedFolder {
  readonly #temps: TempFiles;
  readonly #root: BytePath;
  readonly #overwrite: boolean;
  /** What folders are to have once nothing more is made in them. */
  readonly #folders = new Map<BytePath, FolderWish>();
  #entries = 0;
  #bytes = 0;

  /** `root`: a folder, no link. */
  constructor(temps: TempFiles, root: BytePath, overwrite: boolean) {
    this.#temps = temps;
    this.#root = root;
    this.#overwrite = overwrite;
  }

  /** Entries made, and bytes of their files. */
  get counts(): { readonly entries: number; readonly bytes: number } {
    return { entries: this.#entries, bytes: this.#bytes };
  }

  /** Makes one entry; a file that does not come to its end is removed. */
  async add(header: TarHeader, body: AsyncIterable<Uint8Array>): Promise<void> {
    const parts = entryParts(header.name);
    const type = header.type ?? 'file';
    if (parts.length === 0) {
      if (type !== 'directory') throw badEntry(header.name, 'has no name');
      // The folder itself is left as it is.
      return;
    }
    const path = joinPath(this.#root, parts.join('/'));
    if (isSparse(header)) throw badEntry(header.name, 'is stored with holes, which is not supported');
    await this.#makeParents(parts, header.name);
    switch (type) {
      case 'directory':
        await onPath(path, () => this.#makeFolder(path, header));
        break;
      case 'file':
        await onPath(path, () => this.#makeFile(path, header, body));
        break;
      case 'symlink': {
        const target = entryBytes(header.linkname ?? '', header.name);
        await onPath(path, () =>
          this.#put(path, async (place) => {
            await symlink(Buffer.from(target, 'latin1'), nativeBytes(place));
            if (isTime(header.mtime)) await lutimes(nativeBytes(place), new Date(), secondsOf(header.mtime.getTime()));
          }),
        );
        break;
      }
      case 'link': {
        const source = await this.#linkSource(header);
        await onPath(path, () => this.#makeLink(source, path));
        break;
      }
      default:
        throw badEntry(header.name, `is a ${type}; only files, folders and links are unpacked`);
    }
    this.#entries += 1;
  }

  /** Everything is there: folders get their permissions and times, those below others first. */
  async finish(): Promise<void> {
    const folders = [...this.#folders].sort(([one], [other]) => (one < other ? 1 : -1));
    for (const [path, wish] of folders) await onPath(path, () => this.#finishFolder(path, wish));
  }

  async #makeParents(parts: readonly string[], entry: string): Promise<void> {
    let path = this.#root;
    for (const part of parts.slice(0, -1)) {
      path = joinPath(path, part);
      const found = await onPath(path, () => statsOf(path));
      if (found === undefined) {
        await onPath(path, () => mkdir(nativeBytes(path)));
        this.#folders.set(path, { mode: undefined, mtime: undefined });
      } else {
        checkFolder(found, path, entry);
      }
    }
  }

  async #makeFolder(path: BytePath, { mode, mtime }: TarHeader): Promise<void> {
    const found = await statsOf(path);
    if (found !== undefined && !found.isDirectory()) throw errnoError('EEXIST', path);
    // Ours to write in, until everything is there.
    if (found === undefined) await mkdir(nativeBytes(path), { mode: ((mode ?? 0o755) & KEPT_MODE) | 0o700 });
    else if (!this.#overwrite && !this.#folders.has(path)) return;
    this.#folders.set(path, { mode, mtime });
  }

  async #makeFile(path: BytePath, header: TarHeader, body: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#put(path, async (place) => {
      const file = await open(nativeBytes(place), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        for await (const chunk of body) {
          await writeAll(file, chunk);
          this.#bytes += chunk.length;
        }
        await file.chmod((header.mode ?? 0o644) & KEPT_MODE);
        if (isTime(header.mtime)) await file.utimes(new Date(), secondsOf(header.mtime.getTime()));
      } finally {
        await file.close();
      }
    });
  }

  async #makeLink(source: BytePath, path: BytePath): Promise<void> {
    // A rename of one name of a file to another one does nothing, and leaves both.
    if (this.#overwrite && (await isSamePath(source, path))) return;
    await this.#put(path, (place) => link(nativeBytes(source), nativeBytes(place)));
  }

  /** Made beside its place, and then moved there. */
  async #put(path: BytePath, make: (place: BytePath) => Promise<void>): Promise<void> {
    // Before its content is taken for nothing.
    if (!this.#overwrite && (await statsOf(path)) !== undefined) throw errnoError('EEXIST', path);
    const temp = this.#temps.reserve(parentOf(path));
    try {
      await make(temp.path);
      if (this.#overwrite) await temp.moveTo(path);
      else await takeFreeName(temp, path, 'file');
    } finally {
      await temp.remove();
    }
  }

  /** The file a hard link is another name of: an entry that was unpacked, or lay in the folder. */
  async #linkSource({ name, linkname = '' }: TarHeader): Promise<BytePath> {
    const parts = entryParts(linkname, name);
    let path = this.#root;
    for (const [index, part] of parts.entries()) {
      path = joinPath(path, part);
      const found = await onPath(path, () => statsOf(path));
      if (found === undefined) throw badEntry(name, `links to \`${linkname}\`, which is not there`);
      if (index < parts.length - 1) checkFolder(found, path, name);
      else if (found.isFile()) return path;
    }
    throw badEntry(name, `links to \`${linkname}\`, which is no file`);
  }

  async #finishFolder(path: BytePath, { mode, mtime }: FolderWish): Promise<void> {
    const folder = await open(nativeBytes(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    try {
      if (mode !== undefined) await folder.chmod(mode & KEPT_MODE);
      if (isTime(mtime)) await folder.utimes(new Date(), secondsOf(mtime.getTime()));
    } finally {
      await folder.close();
    }
  }
}

function checkFolder(found: Stats, path: BytePath, entry: string): void {
  if (found.isSymbolicLink()) throw badEntry(entry, 'lies behind a symbolic link');
  if (!found.isDirectory()) throw errnoError('ENOTDIR', path);
}

async function isSamePath(one: BytePath, other: BytePath): Promise<boolean> {
  const [first, second] = await Promise.all([statsOf(one), statsOf(other)]);
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

function isTime(time: Date | undefined): time is Date {
  return time !== undefined && !Number.isNaN(time.getTime());
}

/** A form in which the archive has a map of the file in front of its bytes. */
function isSparse({ pax = {} }: TarHeader): boolean {
  return Object.keys(pax).some((key) => key.startsWith('GNU.sparse.'));
}
