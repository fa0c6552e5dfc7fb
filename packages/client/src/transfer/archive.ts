/** Small files, folders and links as one tar archive each way. An archive that is cut is sent or asked for again as a whole. */
import { packTar, type ParsedTarEntryWithData, type TarEntry, unpackTar } from 'modern-tar';
import { FileError } from '../files/fileErrors.js';
import { shownBytes, textOf } from './bytePath.js';
import { throughCuts } from './cuts.js';
import type { Remote, RemoteHandle } from './remote.js';
import type { TreeItem } from './tree.js';

const BLOCK_BYTES = 1024 * 1024;

/** An entry as it goes into an archive; `bytes`: of a file. Its name has to be UTF-8. */
export function tarEntry(item: TreeItem, bytes?: Uint8Array): TarEntry {
  const name = textOf(item.name) ?? '';
  return {
    header: {
      name: item.kind === 'directory' ? `${name}/` : name,
      type: item.kind,
      size: bytes?.length ?? 0,
      mtime: new Date(item.modifiedAtMs),
      // The header itself has whole seconds.
      pax: { mtime: (item.modifiedAtMs / 1000).toFixed(3) },
      ...(item.mode === undefined ? {} : { mode: item.mode }),
      ...(item.target === undefined ? {} : { linkname: item.target }),
    },
    ...(bytes === undefined ? {} : { body: bytes }),
  };
}

/**
 * Entries into a folder of the server. `overwrite: false` holds for the first attempt alone: after a cut some of them may
 * be there already.
 */
export async function sendArchive(
  remote: Remote,
  folder: string,
  entries: readonly TarEntry[],
  overwrite: boolean,
): Promise<void> {
  const archive = await packTar(entries);
  await throughCuts(shownBytes(folder), async (attempt) => {
    const handle = await remote.unpack(folder, overwrite || attempt > 1);
    try {
      for (let at = 0; at < archive.length; at += BLOCK_BYTES) {
        await handle.write(at, archive.subarray(at, at + BLOCK_BYTES));
      }
      await handle.close({ commit: true });
    } catch (error) {
      await handle.drop();
      throw error;
    }
  });
}

/** Named entries of a folder of the server by name; undefined where they have more than `mostBytes` together. */
export async function receiveArchive(
  remote: Remote,
  folder: string,
  names: readonly string[],
  { followSymlinks, mostBytes }: { readonly followSymlinks: boolean; readonly mostBytes: number },
): Promise<ReadonlyMap<string, ParsedTarEntryWithData> | undefined> {
  const archive = await throughCuts(shownBytes(folder), async () => {
    const handle = await remote.pack(folder, names, followSymlinks);
    try {
      return await readArchive(handle, mostBytes);
    } finally {
      await handle.drop();
    }
  });
  return archive === undefined ? undefined : await entriesOf(archive, names, folder);
}

async function readArchive(handle: RemoteHandle, mostBytes: number): Promise<Uint8Array | undefined> {
  const blocks: Uint8Array[] = [];
  for (let size = 0; ; ) {
    const { bytes, eof } = await handle.read(size, BLOCK_BYTES);
    blocks.push(bytes);
    size += bytes.length;
    if (size > mostBytes) return undefined;
    if (eof) return join(blocks, size);
    if (bytes.length === 0) throw new FileError('BAD_ARCHIVE', 'the archive of the server stopped without an end');
  }
}

function join(blocks: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = blocks;
  if (blocks.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const block of blocks) {
    whole.set(block, at);
    at += block.length;
  }
  return whole;
}

/** What was not asked for is refused: a name of the server's choice is never written to. */
async function entriesOf(
  archive: Uint8Array,
  names: readonly string[],
  folder: string,
): Promise<ReadonlyMap<string, ParsedTarEntryWithData>> {
  const wanted = new Set(names);
  const found = new Map<string, ParsedTarEntryWithData>();
  for (const entry of await unpacked(archive, folder)) {
    const name = entry.header.name.replace(/\/+$/, '');
    if (!wanted.has(name) || found.has(name)) {
      throw badArchive(folder, `it has an entry that was not asked for: ${JSON.stringify(name)}`);
    }
    found.set(name, entry);
  }
  return found;
}

async function unpacked(archive: Uint8Array, folder: string): Promise<ParsedTarEntryWithData[]> {
  try {
    return await unpackTar(archive, { strict: true });
  } catch (error) {
    throw badArchive(folder, error instanceof Error ? error.message : String(error));
  }
}

function badArchive(folder: string, why: string): FileError {
  const path = shownBytes(folder);
  return new FileError('BAD_ARCHIVE', `the archive the server made of ${path} cannot be used: ${why}`, { path });
}
