import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { scaled } from '../../../../../test/support/scale.js';
import { closeScreens, type Screen, shScreen, startScreen } from '../../../../../test/support/terminal.js';
import { until } from '../../../../../test/support/until.js';

const BYTES = 200_000;
/** Less than a terminal holds at its worst, so that a program can write it and end with nobody reading. */
const HELD_BYTES = 4_000;
const BIG_LAST_WRITE = `head -c ${BYTES} /dev/zero | tr '\\0' x; exit 9`;

afterEach(closeScreens);

async function lengthAndCode(screen: Screen): Promise<[number, number | null]> {
  const { code } = await screen.finish();
  return [screen.length, code];
}

describe('the output of a terminal', () => {
  it('loses no byte written right before the exit', async () => {
    for (let round = 0; round < scaled(20, 100); round += 1) {
      expect(await lengthAndCode((await shScreen(BIG_LAST_WRITE)).read())).toEqual([BYTES, 9]);
    }
  });

  it('loses no byte when it is paused around the exit', async () => {
    for (let round = 0; round < scaled(20, 100); round += 1) {
      const screen = (await shScreen(BIG_LAST_WRITE)).read(({ length, output }) => {
        if (length >= BYTES - HELD_BYTES && length < BYTES) output.pause();
      });
      await screen.exit;
      const before = screen.length;
      while (screen.length < BYTES) {
        const { length } = screen;
        screen.output.resume();
        await until(() => screen.length > length, 'more output');
      }
      expect(await lengthAndCode(screen)).toEqual([BYTES, 9]);
      expect(before).toBeLessThanOrEqual(BYTES);
    }
  });

  it('loses no byte when each chunk is followed by a pause', async () => {
    for (let round = 0; round < scaled(3, 50); round += 1) {
      const screen = (await shScreen(BIG_LAST_WRITE)).read(({ output }) => {
        output.pause();
        setTimeout(() => output.resume(), 1);
      });
      expect(await lengthAndCode(screen)).toEqual([BYTES, 9]);
    }
  });

  it('waits for the reader that comes after the exit', async () => {
    const screen = await shScreen(`head -c ${HELD_BYTES} /dev/zero | tr '\\0' x; exit 3`);
    await screen.exit;
    expect(await lengthAndCode(screen.read())).toEqual([HELD_BYTES, 3]);
  });

  it('comes in order, bytes no text can hold included', async () => {
    const screen = await shScreen(`stty -opost; printf '\\342'; printf '\\202\\254\\377\\376\\000\\033[31mtail'`);
    const chunks: Uint8Array[] = [];
    screen.output.start({ bytes: (bytes) => chunks.push(bytes), ended: () => undefined });
    await screen.exit;
    await until(() => Buffer.concat(chunks).toString('latin1').endsWith('tail'), 'the tail');
    expect(Buffer.concat(chunks).toString('hex')).toBe('e282acfffe001b5b33316d7461696c');
  });

  it('holds the program back while it is paused', async () => {
    const screen = await startScreen(['head', '-c', String(BYTES), '/dev/zero']);
    screen.output.pause();
    screen.read();
    // It sleeps only where it waits for room.
    await until(() => readFileSync(`/proc/${screen.child.pid}/stat`, 'latin1').includes(') S '), 'head to wait');
    expect([screen.child.exit, screen.length]).toEqual([undefined, 0]);
    screen.output.resume();
    await screen.finish();
    expect(screen.length).toBe(BYTES);
  });

  it('ends with the leader, whatever ignores the hang-up', async () => {
    const screen = (await shScreen(`trap '' HUP; (sleep 60) & echo "pid $!"; exit 4`)).read();
    const { text, code } = await screen.finish();
    expect([text.startsWith('pid '), code]).toEqual([true, 4]);
    process.kill(Number(text.slice(4)), 'SIGKILL');
  });

  it('ends though a survivor floods it', async () => {
    const screen = (await shScreen(`trap '' HUP; yes & sleep 0.1; exit 4`)).read();
    expect((await screen.finish()).code).toBe(4);
    // The survivor met the end of its terminal.
    await until(() => screen.child.signalGroup('SIGCONT') === 'gone', 'yes to end');
  });

  it('can be destroyed while the program runs, which hangs the terminal up', async () => {
    const screen = (await shScreen('echo ready; exec sleep 60')).read();
    await screen.says('ready');
    screen.output.destroy();
    expect(await screen.finish()).toMatchObject({ code: null, signal: 'SIGHUP' });
  });
});
