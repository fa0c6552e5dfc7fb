import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../../../../../test/support/until.js';
import { countHolders, type Holder, pipeInode } from './holders.js';

describe.skipIf(process.platform !== 'linux')('countHolders', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  /** Runs `holder` on the writing end of a pipe, as descriptor 4; knows the pipe and the holder's pid. */
  function hold(holder: string): Promise<{ inode: string; pid: number }> {
    const writer = `exec 4>&1; ${holder} & echo "$(stat -L -c %i /dev/fd/4) $!"`;
    const child = spawn('/bin/sh', ['-c', `{ ${writer}; } | { read -r line; echo "$line"; exec sleep 301; }`], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const group = -(child.pid ?? 0);
    ends.push(() => process.kill(group, 'SIGKILL'));
    return new Promise((resolve) => {
      child.stdout.once('data', (bytes: Buffer) => {
        const [inode = '', pid] = bytes.toString().trim().split(' ');
        resolve({ inode, pid: Number(pid) });
      });
    });
  }

  async function holdersAre(inode: string, wanted: readonly Holder[]): Promise<void> {
    let holders: readonly Holder[] = [];
    const same = async (): Promise<boolean> => {
      holders = await countHolders([inode, '1']);
      return JSON.stringify(holders) === JSON.stringify(wanted);
    };
    // The shell that made the pipe goes on holding it until it ends.
    await until(same, `holders ${JSON.stringify(wanted)}`);
  }

  it('names who can write to the pipe, and not who only reads from it', async () => {
    const { inode, pid } = await hold('sleep 300');
    await holdersAre(inode, [{ pid, argv: ['sleep', '300'] }]);
  });

  it('knows nobody for a pipe that no other process can write to', async () => {
    const { inode } = await hold('sleep 300 >/dev/null 4>&-');
    await holdersAre(inode, []);
  });

  it('knows a pipe by its descriptor, and anything else as none', () => {
    const descriptor = openSync('/dev/null', 'r');
    ends.push(() => closeSync(descriptor));
    expect(pipeInode(descriptor)).toBeUndefined();
  });
});
