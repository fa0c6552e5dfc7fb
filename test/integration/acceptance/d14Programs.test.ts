/** Files and the server as a program: one that may not look everywhere, one that is killed in a write, clients that vanish. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { connect } from '@exec-server/client';
import { describe, expect, it } from 'vitest';
import { Folder } from '../../support/folder.js';
import { serverProgram } from '../../support/links.js';
import { RawPeer } from '../../support/rawPeer.js';
import { startListening } from '../../support/serverProgram.js';
import { Tag } from '../../support/tagged.js';
import { until } from '../../support/until.js';

const KIB = 1024;
const asUser = fileURLToPath(new URL('../../support/programs/asUser.mjs', import.meta.url));
const NOBODY = 65_534;

/** What a process holds open of files: descriptors but for sockets and pipes, and inotify watches. */
function held(pid: number): { readonly files: string[]; readonly watches: number } {
  const folder = `/proc/${pid}/fd`;
  const open = readdirSync(folder).flatMap((fd) => {
    try {
      return [{ fd, target: readlinkSync(`${folder}/${fd}`) }];
    } catch {
      // It was closed since the listing.
      return [];
    }
  });
  const notifiers = open.filter(({ target }) => target === 'anon_inode:inotify');
  const watches = notifiers.map(({ fd }) => readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8').match(/^inotify wd:/gm));
  return {
    files: open.map(({ target }) => target).filter((target) => target.startsWith('/') && !target.startsWith('/dev/')),
    watches: watches.reduce((sum, found) => sum + (found?.length ?? 0), 0),
  };
}

const blockOf = (byte: string): string => Buffer.alloc(64 * KIB, byte).toString('base64');

/** Opens a staged write and puts a block into it. */
async function stage(peer: RawPeer, path: string, id: string): Promise<void> {
  await peer.request('fs/open', { handleId: id, path, mode: 'replace', stage: id });
  await peer.request('fs/writeBlock', { handleId: id, offset: 0, chunk: blockOf('n') });
}

describe.runIf(process.getuid?.() === 0)('a server that is not root', () => {
  it('says that it may not, and lists the folder that has what it may not read', async () => {
    await using folder = await Folder.make();
    await chmod(folder.path, 0o755);
    await mkdir(folder.at('closed'));
    await writeFile(folder.at('closed', 'file'), 'secret');
    await chmod(folder.at('closed'), 0o700);
    const command: [string, ...string[]] = [
      process.execPath,
      asUser,
      `${NOBODY}`,
      `${NOBODY}`,
      serverProgram,
      '--listen',
      'stdio',
    ];
    await using client = await connect({ command });
    const { fs } = client;
    for (const refused of [
      fs.readFile(folder.at('closed', 'file')),
      fs.list(folder.at('closed')),
      fs.writeFile(folder.at('closed', 'new'), 'x'),
      fs.writeFile(folder.at('new'), 'x'),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: 'EACCES', data: { reason: 'permissionDenied' } });
    }
    const [entry, ...others] = await fs.list(folder.path);
    expect(entry).toMatchObject({ name: 'closed', kind: 'directory', mode: 0o700 });
    expect(others).toEqual([]);
  });
});

describe('a server program', () => {
  it('that is killed before the commit leaves the old file whole, and nothing beside it', async () => {
    await using folder = await Folder.make();
    const tag = new Tag();
    const server = await startListening(tag.env);
    try {
      await writeFile(folder.at('file'), 'old');
      const peer = await RawPeer.dial(server.url);
      await peer.initialize({});
      await stage(peer, folder.at('file'), 's');
      expect(await readdir(folder.path)).toHaveLength(2);
      process.kill(server.pid, 'SIGKILL');
      await peer.closed;
      await until(async () => (await readdir(folder.path)).length === 1, 'the temporary file to be removed');
      expect(await readFile(folder.at('file'), 'utf8')).toBe('old');
    } finally {
      tag.killAll();
      await server.ended;
    }
  });

  it('keeps nothing of clients that vanish but their stages, and those no longer than their sessions', async () => {
    await using folder = await Folder.make();
    const tag = new Tag();
    const server = await startListening(tag.env, '--session-ttl-ms', '1500');
    try {
      await mkdir(folder.at('tree', 'below'), { recursive: true });
      const old = Buffer.alloc(4 * KIB * KIB, 'o');
      await writeFile(folder.at('file'), old);
      const vanish = async (round: number): Promise<void> => {
        const peer = await RawPeer.dial(server.url);
        await peer.initialize({});
        await peer.request('fs/open', { handleId: 'r', path: folder.at('file') });
        await peer.request('fs/open', { handleId: 'w', path: folder.at(`new-${round}`), mode: 'replace' });
        await peer.request('fs/watch', { watchId: 'w', path: folder.at('tree') });
        await peer.request('fs/watchMissing', { watchId: 1, missing: [folder.at('missing')] });
        await peer.request('fs/pack', { handleId: 'p', path: folder.path });
        await peer.request('fs/readBlock', { handleId: 'p', offset: 0, len: 1024 });
        await stage(peer, folder.at('file'), `s-${round}`);
        // Under way when the connection goes, which rejects them.
        const lost = [0, 1, 2, 3].map((at) =>
          peer
            .request('fs/readBlock', { handleId: 'r', offset: at * KIB * KIB, len: KIB * KIB })
            .catch(() => undefined),
        );
        await peer.cut();
        await Promise.all(lost);
      };
      const before = held(server.pid);
      const rounds = 8;
      await Promise.all(Array.from({ length: rounds }, (_, round) => vanish(round)));
      const temporary = async (): Promise<number> =>
        (await readdir(folder.path)).filter((name) => !/^(file|tree|new-\d)$/.test(name)).length;
      await until(() => held(server.pid).watches <= before.watches, 'the watches to end');
      await until(async () => (await temporary()) === 0, 'the stages to end with their sessions');
      await until(() => held(server.pid).files.length <= before.files.length, 'the files to be closed');
      expect((await readFile(folder.at('file'))).equals(old)).toBe(true);
    } finally {
      tag.killAll();
      await server.ended;
    }
  });
});
