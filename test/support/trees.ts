/** Trees of files: made up for a test, and told in lines that two equal trees have in common. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, mkdir, readdir, readlink, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** One line for each entry below a folder: kind, name, mode, time, and digest or target. Folders as they are; the root not. */
export async function linesOfTree(root: string): Promise<string[]> {
  const lines: string[] = [];
  const pending: Buffer[] = [Buffer.alloc(0)];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const name of await readdir(within(root, folder), { encoding: 'buffer' })) {
      const relative = folder.length === 0 ? name : Buffer.concat([folder, Buffer.from('/'), name]);
      const path = within(root, relative);
      const stats = await lstat(path);
      const shared = `${relative.toString('latin1')} ${Math.floor(stats.mtimeMs)}`;
      if (stats.isDirectory()) {
        pending.push(relative);
        lines.push(`folder ${shared} ${(stats.mode & 0o777).toString(8)}`);
      } else if (stats.isSymbolicLink()) {
        lines.push(`link ${shared} ${await readlink(path)}`);
      } else {
        const hash = createHash('sha256');
        await pipeline(createReadStream(path), hash);
        lines.push(`file ${shared} ${(stats.mode & 0o777).toString(8)} ${stats.size} ${hash.digest('hex')}`);
      }
    }
  }
  return lines.sort();
}

function within(root: string, relative: Buffer): Buffer {
  return relative.length === 0 ? Buffer.from(root) : Buffer.concat([Buffer.from(`${root}/`), relative]);
}

/** `files` files of up to 3 KiB in folders of 100, and among them links, empty files and empty folders. */
export async function plantTree(root: string, files: number, byteOf: (index: number) => number): Promise<void> {
  for (let folder = 0; folder * 100 < files; folder += 1) {
    const path = join(root, `folder ${folder}`, 'é');
    await mkdir(path, { recursive: true });
    const count = Math.min(100, files - folder * 100);
    await Promise.all(
      Array.from({ length: count }, async (_, at) => {
        const index = folder * 100 + at;
        const file = join(path, `file-${index}`);
        await writeFile(file, Buffer.alloc((index * 37) % 3_000, byteOf(index)), {
          mode: index % 7 === 0 ? 0o750 : 0o640,
        });
        await utimes(file, 1_000_000 + index, 1_000_000 + index + 0.123);
      }),
    );
    await mkdir(join(root, `empty ${folder}`), { mode: 0o711 });
    await symlink(`folder ${folder}/é/file-${folder * 100}`, join(root, `link ${folder}`));
    await utimes(path, 2_000_000, 2_000_000.5);
  }
}
