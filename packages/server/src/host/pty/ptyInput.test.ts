import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { scaled } from '../../../../../test/support/scale.js';
import { closeScreens, shScreen, startScreen } from '../../../../../test/support/terminal.js';
import { until } from '../../../../../test/support/until.js';
import { liveMasterFds } from './masters.js';

const PASTE_BYTES = 8 * 1024 * 1024;

afterEach(closeScreens);

function cpuMs({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000;
}

describe('the input of a terminal', () => {
  it('is taken in order, and never before the call returns', async () => {
    const screen = (await shScreen('stty -echo; echo ready; while read -r line; do echo "got $line"; done')).read();
    await screen.says('ready');
    const taken: number[] = [];
    for (const index of [1, 2, 3]) screen.child.stdin.write(Buffer.from(`${index}\n`), () => taken.push(index));
    screen.child.stdin.write(new Uint8Array(), () => taken.push(4));
    expect(taken).toEqual([]);
    expect(screen.child.stdin.queuedBytes).toBe(6);
    await screen.says('got 3');
    expect([taken, screen.child.stdin.queuedBytes]).toEqual([[1, 2, 3, 4], 0]);
    expect(screen.text).toBe('ready\r\ngot 1\r\ngot 2\r\ngot 3\r\n');
  });

  it('is echoed, and ends with the EOF character', async () => {
    const screen = (await shScreen('read x; echo "got $x"; read y || echo eof')).read();
    await screen.type('hey\n');
    await screen.says('got hey');
    screen.child.stdin.end();
    expect((await screen.finish()).text).toBe('hey\r\ngot hey\r\neof\r\n');
    expect((await screen.type('late'))?.message).toContain('no more input');
  });

  it('ends after a line that is not complete', async () => {
    const screen = (await shScreen('stty -echo; echo ready; cat; echo "end"')).read();
    await screen.says('ready');
    await screen.type('a\nhalf');
    screen.child.stdin.end();
    expect((await screen.finish()).text).toBe('ready\r\na\r\nhalfend\r\n');
  });

  it('reaches a program in raw mode whole, however large', async () => {
    const script = `stty raw -echo; echo ready; head -c ${PASTE_BYTES} | sha256sum`;
    const screen = (await shScreen(script)).read();
    await screen.says('ready');
    const paste = Buffer.alloc(PASTE_BYTES, 'abcdefghijklmnopqrstuvwxyz\n\x03\x04\x7f\xff', 'latin1');
    await new Promise((resolve) => screen.child.stdin.write(paste, resolve));
    expect((await screen.finish()).text).toContain(createHash('sha256').update(paste).digest('hex'));
  }, 60_000);

  it('costs next to nothing while the program does not read', async () => {
    const screen = (await shScreen('stty raw -echo; echo ready; sleep 60')).read();
    await screen.says('ready');
    let error: Error | undefined;
    let broken = 0;
    screen.child.stdin.write(Buffer.alloc(PASTE_BYTES), (given) => (error = given));
    screen.child.stdin.onBroken(() => (broken += 1));
    // Measured over time, since a loop that spins looks like one that waits.
    const windowMs = scaled(500, 3000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, windowMs));
    expect(cpuMs(process.cpuUsage(before))).toBeLessThan(windowMs * 0.15);
    expect(screen.child.stdin.queuedBytes).toBeGreaterThan(PASTE_BYTES * 0.9);
    screen.child.signalGroup('SIGKILL');
    await screen.finish();
    expect([error?.message, broken, screen.child.stdin.queuedBytes]).toEqual([
      'the terminal takes no more input',
      1,
      0,
    ]);
  });

  it('of a dead terminal never reaches another that got its number', async () => {
    let reused = 0;
    for (let round = 0; round < scaled(10, 100); round += 1) {
      const dead = (await shScreen('stty raw -echo; echo ready; sleep 60')).read();
      await dead.says('ready');
      const [number] = liveMasterFds();
      dead.child.stdin.write(Buffer.alloc(256 * 1024, 'INJECTED\n'), () => undefined);
      dead.child.signalGroup('SIGKILL');
      await dead.exit;
      const screen = (await startScreen(['/bin/cat'])).read();
      if (liveMasterFds()[0] === number) reused += 1;
      await screen.type('clean\n');
      await screen.says('clean\r\nclean\r\n');
      screen.child.stdin.end();
      expect((await screen.finish()).text).toBe('clean\r\nclean\r\n');
    }
    expect(reused).toBeGreaterThan(0);
  });

  it('interrupts the job in the foreground, and the shell lives', async () => {
    const screen = (await startScreen(['/bin/bash', '--norc', '--noprofile', '-i'])).read();
    await screen.type("PS1='first> '\n");
    await screen.says('\nfirst> ');
    await screen.type("PS1='second> '; sleep 60\n");
    // A job has the terminal before it is the program, and lets an early interrupt pass.
    await until(() => foregroundProgram(screen.child.pid) === 'sleep', 'sleep to have the terminal');
    await screen.type('\x03');
    await screen.says('\nsecond> ');
    await screen.type('echo "status $?"\n');
    await screen.says('status 130');
    await screen.type('exit 5\n');
    expect((await screen.finish()).code).toBe(5);
  });
});

/** Read here on its own: what the code under test reads is under test. */
function foregroundProgram(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const group = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[5];
  return readFileSync(`/proc/${group}/comm`, 'latin1').trim();
}
