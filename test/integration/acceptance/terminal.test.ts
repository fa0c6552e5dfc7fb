/** Programs on a terminal: sizes, signals from the keyboard, and replay. */
import { connect } from '@exec-server/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { commandOf, isAlive } from '../../support/links.js';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';
import { Watched } from '../../support/watched.js';

const script = [
  "trap 'stty size' WINCH",
  'stty size',
  "printf '\\033[31mred\\033[0m\\n'",
  'echo ready',
  // A shell that is still busy with one signal may miss the next: the dots tell that it is not.
  'while ! [ -e "$0" ]; do sleep .05; printf .; done',
  'exit 5',
].join('; ');

describe.each(wires)('a terminal over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  const resize = (processId: string, cols: number, rows: number) =>
    trial.client.call('process/resize', { processId, cols, rows });

  it('has the size it was given at birth and at each resize, carries ANSI, and ends without an error', async () => {
    const process = await trial.start(['bash', '--norc', '-c', script, '/'], { tty: { cols: 80, rows: 24 } });
    // The loop ends at once; the sizes are those of another program.
    expect(await process.handle.wait()).toMatchObject({ exitCode: 5, reason: 'exited' });
    expect(await process.handle.closed()).toEqual({ reason: 'ended', holders: undefined });
    await process.over;
    expect(process.bytes.toString('latin1')).toBe('24 80\r\n\x1b[31mred\x1b[0m\r\nready\r\n');
    expect(new Set(process.events.map((event) => (event.type === 'output' ? event.stream : 'pty')))).toEqual(
      new Set(['pty']),
    );
  });

  it('tells its program each new size by SIGWINCH, in order', async () => {
    const process = await trial.start(['bash', '--norc', '-c', script, '/none'], { tty: true });
    await process.see('ready\r\n');
    expect(await resize(process.id, 132, 50)).toEqual({});
    await process.see(/50 132\r\n\.\./);
    expect(await resize(process.id, 100, 40)).toEqual({});
    await process.see('40 100');
    expect(process.text.match(/\d+ \d+/g)).toEqual(['24 80', '50 132', '40 100']);
    await process.handle.terminate();
  });

  it('refuses sizes no terminal has', async () => {
    const process = await trial.start(['cat'], { tty: true });
    const sizes = [
      [0, 0],
      [80, 0],
      [0, 24],
      [-1, 24],
      [80, -1],
      [70_000, 24],
      [80, 70_000],
      [65_536, 24],
      [80.5, 24],
    ] as const;
    for (const [cols, rows] of sizes) {
      await expect(resize(process.id, cols, rows)).rejects.toMatchObject({ data: { reason: 'invalidParams' } });
    }
    expect(await resize(process.id, 65_535, 1)).toEqual({});
    await process.handle.terminate();
    for (const [cols, rows] of sizes) {
      await expect(trial.client.start({ argv: ['cat'], tty: { cols, rows } })).rejects.toMatchObject({
        data: { reason: 'invalidParams' },
      });
    }
  });

  it('answers a resize after the exit, of a pipe, and of nothing by a reason of its own', async () => {
    const ended = await trial.start(['true'], { tty: true });
    await ended.over;
    await expect(resize(ended.id, 80, 24)).rejects.toMatchObject({ data: { reason: 'processEnded' } });
    const piped = await trial.start(['sleep', '600']);
    await expect(resize(piped.id, 80, 24)).rejects.toMatchObject({ data: { reason: 'notTerminal' } });
    await piped.handle.terminate();
    await expect(resize('never', 80, 24)).rejects.toMatchObject({ data: { reason: 'unknownProcess' } });
  });

  it('interrupts the foreground command by the key, and the shell lives on', async () => {
    const shell = await trial.start(['bash', '--norc', '-i'], { tty: true, env: { PS1: '$ ', HISTFILE: '' } });
    await shell.see('$ ');
    // The marker is assembled by the shell, so that its echo does not pass for it.
    await shell.handle.write('echo be""gun; sleep 60\n');
    await shell.see('begun');
    await until(() => commandsOf(trial).includes('sleep 60'), 'the sleep to run');
    await shell.handle.write('\x03');
    await shell.see('^C');
    await shell.handle.write('echo status""=$?\n');
    await shell.see('status=130');
    expect(isAlive(shell.pid)).toBe(true);
    expect(commandsOf(trial)).not.toContain('sleep 60');
    await shell.handle.write('exit 4\n');
    expect(await shell.handle.wait()).toMatchObject({ exitCode: 4, signal: undefined });
  });

  it('takes end-of-file from the keyboard, and the terminal as one of its program alone', async () => {
    const process = await trial.start(['sh', '-c', 'tty; cat; echo over; tty'], { tty: true });
    await process.see('/dev/pts/');
    await process.handle.write('line\n\x04');
    await process.over;
    expect(process.text).toContain('line\r\nline\r\nover\r\n');
    const names = process.text.match(/\/dev\/pts\/\d+/g) ?? [];
    expect(new Set(names).size).toBe(1);
  });
});

it('goes on for a second client, which resizes it and gets all of it again', async () => {
  const trial = await Trial.open('websocket');
  const session = { url: trial.url ?? '' };
  const first = await connect(session);
  try {
    const handle = await first.start({ argv: ['bash', '--norc', '-c', script, '/none'], tty: true });
    const seen = new Watched(handle);
    await seen.see('ready');
    await handle.resize({ cols: 132, rows: 50 });
    await seen.see(/50 132\r\n\.\./);
    await first.detach();
    const second = await connect({ ...session, resumeSessionId: first.sessionId });
    try {
      await second.call('process/resize', { processId: handle.processId, cols: 100, rows: 40 });
      const again = new Watched(await second.attach(handle.processId));
      await again.see('40 100\r\n');
      expect(again.text.replaceAll('.', '')).toBe('24 80\r\n\x1b[31mred\x1b[0m\r\nready\r\n50 132\r\n40 100\r\n');
      const seqs = again.events.map((event) => ('seq' in event ? event.seq : 0));
      expect(seqs).toEqual(seqs.map((_, index) => index + 1));
      await again.handle.terminate();
      await again.over;
      expect(again.order).toEqual(['output', 'exited', 'closed']);
    } finally {
      await second.close();
    }
    await trial.expectClean();
  } finally {
    await first.close();
    await trial.close();
  }
});

function commandsOf(trial: Trial): string[] {
  return trial.relatives().map(commandOf);
}
