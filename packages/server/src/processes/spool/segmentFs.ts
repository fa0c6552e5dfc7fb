/** What segments ask of the file system, so that a test can fail it, and the one of the host. */
import { close, constants, mkdtempSync, open, read, rm, unlink, writev } from 'node:fs';
import { promisify } from 'node:util';

export interface SegmentFs {
  /** Makes a private folder from this prefix. Throws where it cannot. */
  makeFolder(prefix: string): string;
  removeFolder(path: string): Promise<void>;
  /** Makes a new file that only its owner reads and writes; rejects when there is one. */
  open(path: string): Promise<number>;
  unlink(path: string): Promise<void>;
  /** Resolves to the number of bytes written, which may be fewer than asked for. */
  write(fd: number, buffers: readonly Uint8Array[], position: number): Promise<number>;
  /** Fills `buffer` from its start; resolves to the number of bytes read. */
  read(fd: number, buffer: Uint8Array, position: number): Promise<number>;
  close(fd: number): Promise<void>;
}

const openFile = promisify(open);
const unlinkFile = promisify(unlink);
const removeTree = promisify(rm);
const writeFile = promisify(writev);
const readFile = promisify(read);
const closeFile = promisify(close);

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;

export const hostSegmentFs: SegmentFs = {
  // mkdtemp makes it with mode 0700.
  makeFolder: (prefix) => mkdtempSync(prefix),
  removeFolder: (path) => removeTree(path, { recursive: true, force: true }),
  open: (path) => openFile(path, NEW_FILE, 0o600),
  unlink: (path) => unlinkFile(path),
  async write(fd, buffers, position) {
    const { bytesWritten } = await writeFile(fd, buffers, position);
    return bytesWritten;
  },
  async read(fd, buffer, position) {
    const { bytesRead } = await readFile(fd, buffer, 0, buffer.length, position);
    return bytesRead;
  },
  close: (fd) => closeFile(fd),
};

/** A new file without a name: it is gone with its descriptor, however this program ends. */
export async function openUnlinked(fs: SegmentFs, path: string): Promise<number> {
  const fd = await fs.open(path);
  try {
    await fs.unlink(path);
  } catch (error) {
    await fs.close(fd);
    throw error;
  }
  return fd;
}
