/** Moves the bytes of one file in blocks, several in flight, and goes on where it was after a cut. */
import { FileError } from '../files/fileErrors.js';
import type { OpenReply } from '../files/fileGuards.js';
import { shownBytes } from './bytePath.js';
import { throughCuts } from './cuts.js';
import type { Remote, RemoteHandle } from './remote.js';
import { randomId } from '../randomId.js';

const BLOCK_BYTES = 512 * 1024;
/** Blocks of one file that are on their way at a time. */
const BLOCKS_IN_FLIGHT = 4;

/** A file that is read; fewer bytes than asked for only at its end. */
export interface ByteSource {
  /** Undefined for one that does not know it: it is read to its end. */
  readonly size: number | undefined;
  /** What it gives is good until the next call. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface ByteSink {
  write(offset: number, bytes: Uint8Array): Promise<void>;
}

export interface SentFile {
  /** Of the target. */
  readonly path: string;
  readonly mode: number | undefined;
  readonly modifiedAtMs: number;
  readonly overwrite: boolean;
}

/** How many bytes have arrived, from the start of the file on; told once for each byte, whatever was sent again. */
class Arrived {
  readonly #moved: (bytes: number) => void;
  #bytes = 0;

  constructor(moved: (bytes: number) => void) {
    this.#moved = moved;
  }

  get bytes(): number {
    return this.#bytes;
  }

  upTo(offset: number): void {
    if (offset <= this.#bytes) return;
    this.#moved(offset - this.#bytes);
    this.#bytes = offset;
  }
}

/** A file to the server. It takes the place of its target in one step; without extensions it is written in place. */
export async function sendFile(
  remote: Remote,
  source: ByteSource,
  target: SentFile,
  moved: (bytes: number) => void,
): Promise<void> {
  const arrived = new Arrived(moved);
  if (!remote.extended) {
    await sendInPlace(remote, source, target, arrived);
    return;
  }
  const { path, mode, modifiedAtMs, overwrite } = target;
  const stage = randomId();
  const params = {
    mode: 'replace' as const,
    stage,
    ...(mode === undefined ? {} : { permissions: mode }),
    ...(overwrite ? {} : { exclusive: true }),
  };
  let last: RemoteHandle | undefined;
  try {
    const attempt = async (): Promise<void> => {
      const { handle, answer } = await remote.open(path, params);
      if (answer.committed !== undefined) return;
      last = handle;
      await sendBlocks(handle, source, path, { from: answer.stagedBytes ?? 0, arrived });
      await handle.close({ commit: true, modifiedAtMs });
    };
    await throughCuts(shownBytes(path), attempt, () => arrived.bytes);
  } catch (error) {
    await last?.drop();
    // What a lost connection has left of it.
    await remote.cleanUp(async (quick) => {
      const { handle, answer } = await quick.open(path, params);
      if (answer.committed === undefined) await handle.close();
    });
    throw error;
  }
}

async function sendInPlace(remote: Remote, source: ByteSource, { path }: SentFile, arrived: Arrived): Promise<void> {
  let opened = false;
  try {
    await throughCuts(shownBytes(path), async () => {
      const { handle } = await remote.open(path, { mode: 'replace' });
      opened = true;
      try {
        await sendBlocks(handle, source, path, { from: 0, arrived });
      } catch (error) {
        await handle.drop();
        throw error;
      }
      await handle.close();
    });
  } catch (error) {
    // It was emptied at once, so that what is there is a part of the new one.
    if (opened) await remote.cleanUp((quick) => quick.remove(path));
    throw error;
  }
}

async function sendBlocks(
  handle: RemoteHandle,
  source: ByteSource,
  path: string,
  { from, arrived }: { readonly from: number; readonly arrived: Arrived },
): Promise<void> {
  const inFlight: Promise<void>[] = [];
  arrived.upTo(from);
  try {
    const size = source.size ?? Number.MAX_SAFE_INTEGER;
    for (let offset = from; offset < size; ) {
      const bytes = await source.read(offset, Math.min(BLOCK_BYTES, size - offset));
      if (bytes.length === 0) {
        if (source.size === undefined) break;
        throw shrunk(path);
      }
      const end = offset + bytes.length;
      const sent = handle.write(offset, bytes).then(() => arrived.upTo(end));
      // Its failure is met when it is waited for.
      sent.catch(() => undefined);
      inFlight.push(sent);
      if (inFlight.length >= BLOCKS_IN_FLIGHT) await inFlight.shift();
      offset = end;
    }
    await Promise.all(inFlight);
  } finally {
    await Promise.allSettled(inFlight);
  }
}

/** A file of the server, to its end. `sink` may have got any part of it when this fails. */
export async function receiveFile(
  remote: Remote,
  path: string,
  sink: ByteSink,
  moved: (bytes: number) => void,
): Promise<void> {
  const arrived = new Arrived(moved);
  let [offset, version] = [0, undefined as string | undefined];
  const attempt = async (): Promise<void> => {
    const { handle, answer } = await remote.open(path, remote.extended ? { detail: true } : {});
    try {
      const state = await stateOf(remote, path, answer);
      if (version !== undefined && offset > 0 && state !== version) throw changed(path);
      version = state;
      await receiveBlocks(handle, offset, async (bytes) => {
        await sink.write(offset, bytes);
        offset += bytes.length;
        arrived.upTo(offset);
      });
    } finally {
      await handle.drop();
    }
  };
  await throughCuts(shownBytes(path), attempt, () => offset);
}

/** Which file it is and in which state: what was read before a cut must go together with what is read after it. */
async function stateOf(remote: Remote, path: string, { identity, version }: OpenReply): Promise<string> {
  if (identity !== undefined && version !== undefined) return `${identity} ${version}`;
  return (await remote.stat(path))?.version ?? '';
}

async function receiveBlocks(
  handle: RemoteHandle,
  from: number,
  take: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const inFlight: ReturnType<RemoteHandle['read']>[] = [];
  let asked = from;
  const ask = (): void => {
    const block = handle.read(asked, BLOCK_BYTES);
    // Its failure is met when it is waited for.
    block.catch(() => undefined);
    inFlight.push(block);
    asked += BLOCK_BYTES;
  };
  try {
    // One at first: most files end within it.
    ask();
    for (;;) {
      const block = await inFlight.shift();
      if (block === undefined) return;
      await take(block.bytes);
      if (block.eof || block.bytes.length < BLOCK_BYTES) return;
      while (inFlight.length < BLOCKS_IN_FLIGHT) ask();
    }
  } finally {
    await Promise.allSettled(inFlight);
  }
}

function shrunk(path: string): FileError {
  return new FileError('FILE_CHANGED', `the local file for ${shownBytes(path)} became shorter while it was sent`, {
    path: shownBytes(path),
    retryable: true,
  });
}

function changed(path: string): FileError {
  return new FileError('FILE_CHANGED', `${shownBytes(path)} changed on the server while it was fetched`, {
    path: shownBytes(path),
    retryable: true,
  });
}
