import { closeSync, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { scaled } from '../../../../../test/support/scale.js';
import { closeScreens, PATH, shScreen, startScreen } from '../../../../../test/support/terminal.js';
import type { SpawnedChild } from '../child.js';
import { createHostPlatform } from '../spawn.js';
import { liveMasterFds, withoutMasters } from './masters.js';

afterEach(closeScreens);

const LIST = ['/bin/ls', '-l', '/proc/self/fd'];

function read(child: SpawnedChild): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    child.outputs[0]?.start({
      bytes: (bytes) => (text += Buffer.from(bytes).toString()),
      ended: () => resolve(text),
    });
  });
}

/** Opens descriptors up to a number far above 15. The returned function closes them. */
function fillNumbers(upTo: number): () => void {
  const fds: number[] = [];
  while ((fds.at(-1) ?? 0) < upTo) fds.push(openSync('/dev/null', 'r'));
  return () => {
    for (const fd of fds) closeSync(fd);
  };
}

function zombies(): number {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const [state, parent] = readFileSync(`/proc/${entry}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
      return state === 'Z' && Number(parent) === process.pid;
    } catch {
      return false; // it ended since the listing
    }
  }).length;
}

describe('the descriptors of a terminal', () => {
  it('are not held by a child on pipes', async () => {
    const host = createHostPlatform();
    const screens = [await shScreen('sleep 60'), await shScreen('sleep 60')];
    expect(liveMasterFds()).toHaveLength(screens.length);
    const child = await host.spawn({ argv: LIST, cwd: '/', env: { PATH }, stdin: 'none' });
    const listing = await read(child);
    expect(listing).toContain('/dev/null');
    expect(listing).not.toMatch(/ptmx|pts/);
    await host.close();
  });

  it('are not held by a child on another terminal, whatever numbers are free', async () => {
    const close = fillNumbers(60);
    await shScreen('sleep 60');
    close();
    for (let round = 0; round < 3; round += 1) {
      const screen = (await startScreen(LIST)).read();
      const { text } = await screen.finish();
      expect(text).toContain('pts');
      expect(text).not.toContain('ptmx');
      await shScreen('sleep 60');
    }
  });

  it('are closed when the terminal ends, and no process is left', async () => {
    await (await shScreen('exit 0')).read().finish();
    const before = readdirSync('/proc/self/fd').length;
    const rounds = scaled(20, 200);
    for (let round = 0; round < rounds; round += 5) {
      const screens = await Promise.all(Array.from({ length: 5 }, () => shScreen('echo x; exit 1')));
      await Promise.all(screens.map((screen) => screen.read().finish()));
    }
    expect([readdirSync('/proc/self/fd').length, liveMasterFds(), zombies()]).toEqual([before, [], 0]);
  });

  it('are closed at once by destroying the output', async () => {
    const screen = (await shScreen('exec sleep 60')).read();
    const [master] = liveMasterFds();
    expect(fstatSync(master ?? -1).isCharacterDevice()).toBe(true);
    screen.output.destroy();
    expect(() => fstatSync(master ?? -1)).toThrow('EBADF');
    expect(liveMasterFds()).toEqual([]);
    await screen.finish();
  });

  it('leave the streams of a spawn as they are when there are none', () => {
    const stdio: (number | 'ignore')[] = ['ignore', 1, 2];
    expect(withoutMasters(stdio, (given) => given)).toBe(stdio);
  });
});
