/** Gives a file or folder a name that is to be free: of two that want it at a time one gets EEXIST, and nothing is lost. */
import { constants } from 'node:fs';
import { mkdir, open, rmdir, unlink } from 'node:fs/promises';
import { type BytePath, nativeBytes } from '../paths.js';
import { errnoOf } from './errno.js';

/** Something that has a name now. */
export interface Named {
  moveTo(name: BytePath): Promise<void>;
  /** Gives it another name; not asked of a folder. */
  linkTo(name: BytePath): Promise<void>;
  /** Takes away the name it had. */
  remove(): Promise<void>;
}

/** Errnos of hosts that give no file a second name. */
const NOT_LINKED = new Set(['EPERM', 'EACCES', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Throws the error of the host, EEXIST among them; then it has its old name alone. */
export async function takeFreeName(from: Named, name: BytePath, kind: 'file' | 'folder'): Promise<void> {
  if (kind === 'folder') {
    // A rename replaces an empty folder.
    await mkdir(nativeBytes(name), 0o700);
    await moveOver(from, name, () => rmdir(nativeBytes(name)));
    return;
  }
  try {
    await from.linkTo(name);
  } catch (error) {
    if (!NOT_LINKED.has(errnoOf(error) ?? '')) throw error;
    const { O_WRONLY, O_CREAT, O_EXCL } = constants;
    const taken = await open(nativeBytes(name), O_WRONLY | O_CREAT | O_EXCL, 0o600);
    await taken.close();
    await moveOver(from, name, () => unlink(nativeBytes(name)));
    return;
  }
  try {
    await from.remove();
  } catch (error) {
    await unlink(nativeBytes(name));
    throw error;
  }
}

async function moveOver(from: Named, name: BytePath, undo: () => Promise<void>): Promise<void> {
  try {
    await from.moveTo(name);
  } catch (error) {
    await undo();
    throw error;
  }
}
