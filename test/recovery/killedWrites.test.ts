/** What a server that is killed in the middle of a write leaves behind: the old file, and nothing beside it. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RawPeer } from '../support/rawPeer.js';
import { Scratch } from '../support/scratch.js';
import { startListening } from '../support/serverProgram.js';
import { until } from '../support/until.js';
import { ustar } from '../support/ustar.js';

describe.skipIf(process.platform !== 'linux')('a server that ends', () => {
  let scratch: Scratch;
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(() => scratch.remove());

  const temporary = (): string[] => scratch.names().filter((name) => name.endsWith('.tmp'));

  it('by SIGKILL in the middle of a copy leaves the old file whole', async () => {
    scratch.file('folder with space/big');
    expect(spawnSync('truncate', ['-s', '64G', scratch.path('folder with space/big')]).status).toBe(0);
    scratch.file('folder with space/f', 'old');
    const program = await startListening({});
    const peer = await RawPeer.dial(program.url);
    await peer.initialize({});
    const copying = peer.request('fs/copy', {
      sourcePath: scratch.path('folder with space/big'),
      destinationPath: scratch.path('folder with space/f'),
      recursive: false,
    });
    await until(() => temporary().length > 0, 'the temporary file');
    program.child.kill('SIGKILL');
    await expect(copying).rejects.toThrow('the connection was lost');
    await until(() => temporary().length === 0, 'the end of the temporary file');
    expect(scratch.text('folder with space/f')).toBe('old');
    expect(scratch.names('folder with space')).toEqual(['big', 'f']);
  });

  it('by SIGKILL in the middle of large writes leaves the old file or the new one', async () => {
    const versions = ['a', 'b', 'c'].map((letter) => letter.repeat(8 * 1024 * 1024));
    scratch.file('f', versions[2]);
    for (const [round, content] of ['a', 'b'].entries()) {
      const program = await startListening({});
      const peer = await RawPeer.dial(program.url);
      await peer.initialize({});
      const dataBase64 = Buffer.from(versions[round] ?? '').toString('base64');
      const writing = peer.request('fs/writeFile', { path: scratch.path('f'), dataBase64 }).catch(() => content);
      await until(() => temporary().length > 0 || scratch.text('f').startsWith(content), 'the write');
      program.child.kill('SIGKILL');
      await writing;
      await program.ended;
      await until(() => temporary().length === 0, 'the end of the temporary file');
      expect(versions.includes(scratch.text('f'))).toBe(true);
    }
    expect(scratch.names()).toEqual(['f']);
  });

  it('by SIGKILL with staged writes, whose connection lives or not, leaves the old files whole', async () => {
    scratch.file('f', 'old');
    const program = await startListening({});
    const stage = async (name: string): Promise<RawPeer> => {
      const peer = await RawPeer.dial(program.url);
      await peer.initialize({});
      await peer.request('fs/open', { handleId: 'h', path: scratch.path(name), mode: 'replace', stage: 's' });
      await peer.request('fs/writeBlock', { handleId: 'h', offset: 0, chunk: 'aGFsZg==' });
      return peer;
    };
    await stage('f');
    const second = await stage('g');
    await second.cut();
    expect(temporary()).toHaveLength(2);
    program.child.kill('SIGKILL');
    await until(() => temporary().length === 0, 'the end of the temporary files');
    expect([scratch.names(), scratch.text('f')]).toEqual([['f'], 'old']);
  });

  it.each([true, false])('by SIGKILL leaves nothing of the file it unpacks (overwrite: %s)', async (overwrite) => {
    const program = await startListening({});
    const peer = await RawPeer.dial(program.url);
    await peer.initialize({});
    await peer.request('fs/unpack', { handleId: 'u', path: scratch.path('out'), overwrite });
    const chunk = ustar([
      { name: 'first', body: 'x' },
      { name: 'big', body: 'y'.repeat(100_000) },
    ])
      .subarray(0, 50_000)
      .toString('base64');
    await peer.request('fs/writeBlock', { handleId: 'u', offset: 0, chunk });
    await until(() => scratch.has('out/first') && temporary().length > 0, 'the temporary file');
    program.child.kill('SIGKILL');
    await until(() => temporary().length === 0, 'the end of the temporary file');
    expect(scratch.names('out')).toEqual(['first']);
  });

  it('by SIGTERM takes its temporary files away before it is gone', async () => {
    scratch.file('f', 'old');
    const program = await startListening({});
    const peer = await RawPeer.dial(program.url);
    await peer.initialize({});
    await peer.request('fs/open', { handleId: 'h', path: scratch.path('f'), mode: 'replace', stage: 's' });
    await peer.cut();
    expect(temporary()).toHaveLength(1);
    program.child.kill('SIGTERM');
    await program.ended;
    expect(scratch.names()).toEqual(['f']);
  });
});
