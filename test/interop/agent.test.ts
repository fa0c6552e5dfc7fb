/** The real agent works on our server as it does on the reference: the same scenarios on both. */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { until } from '../support/until.js';
import { expectDone, outputOf, startAgent } from './rig/agentRun.js';
import { startHeld } from './rig/heldCommand.js';
import { serverNames } from './rig/servers.js';
import { commandReport, execCommand, runningSession, viewImage, writeStdin } from './rig/toolCalls.js';

/** Prints 6.9 MB. */
const million = 'seq 1 1000000';
const millionBytes = 6_888_896;

/** A single red pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // ESRCH: there is no such process.
  }
};

describe.skipIf(inject('referenceBinary') === null).each(serverNames)('the agent on %s', (server) => {
  it('runs a shell command in its folder and hears its exit code', async () => {
    const run = await startAgent(server);
    const [report] = await run.model.turn(execCommand({ cmd: 'echo kept > out.txt; echo said; echo why >&2; exit 3' }));
    expect(commandReport(report).exitCode).toBe(3);
    expect(commandReport(report).output.split('\n').sort()).toEqual(['', 'said', 'why']);
    await expectDone(run);
    expect(await readFile(join(run.folder, 'out.txt'), 'utf8')).toBe('kept\n');
  });

  it('types into a program on a terminal until it ends its input', async () => {
    const run = await startAgent(server);
    const [started] = await run.model.turn(execCommand({ cmd: 'test -t 0 && cat', tty: true, yield_time_ms: 250 }));
    const session_id = runningSession(started);
    const [echoed] = await run.model.turn(writeStdin({ session_id, chars: 'hello\n' }));
    expect(commandReport(echoed).output).toBe('hello\r\nhello\r\n');
    const [ended] = await run.model.turn(writeStdin({ session_id, chars: '\u0004', yield_time_ms: 10_000 }));
    expect(commandReport(ended).exitCode).toBe(0);
    await expectDone(run);
  });

  it.each([
    { tty: false, by: 'process/signal', output: 'caught\n' },
    { tty: true, by: 'process/write', output: '^Ccaught\r\n' },
  ])('interrupts a command (tty: $tty)', async ({ tty, by, output }) => {
    const run = await startAgent(server);
    const cmd = 'trap "echo caught; exit 7" INT; echo ready; while :; do sleep 0.05; done';
    const [started] = await run.model.turn(execCommand({ cmd, tty, yield_time_ms: 1_000 }));
    const session_id = runningSession(started);
    expect(commandReport(started).output.trim()).toBe('ready');
    const [ended] = await run.model.turn(writeStdin({ session_id, chars: '\u0003', yield_time_ms: 10_000 }));
    expect(commandReport(ended)).toMatchObject({ exitCode: 7, output });
    expect(run.recorder.requests(by)).toHaveLength(1);
    await expectDone(run);
  });

  it('kills the command when the agent itself is interrupted', async () => {
    const run = await startAgent(server);
    await run.model.call(execCommand({ cmd: 'echo pid $$; exec sleep 300', yield_time_ms: 30_000 }));
    await until(() => outputOf(run).includes('\n'), 'the pid of the command');
    const pid = Number(/pid (\d+)/.exec(outputOf(run).toString())?.[1]);
    expect(isRunning(pid)).toBe(true);
    run.agent.interrupt();
    expect(await run.agent.ended).toBe(1);
    await until(() => !isRunning(pid), 'the end of the command');
  });

  it('applies a patch that adds, changes, moves and deletes files', async () => {
    const run = await startAgent(server);
    const at = (name: string): string => join(run.folder, name);
    await Promise.all([
      writeFile(at('changed.txt'), 'one\ntwo\nthree\n', { mode: 0o755 }),
      writeFile(at('gone.txt'), 'x\n'),
      writeFile(at('here.txt'), 'before\n'),
    ]);
    const patch = [
      '*** Begin Patch',
      ...['*** Add File: sub/deep/new.txt', '+brand', '+new ü'],
      ...['*** Update File: changed.txt', '@@', ' one', '-two', '+zwei', ' three'],
      '*** Delete File: gone.txt',
      ...['*** Update File: here.txt', '*** Move to: moved/there.txt', '@@', '-before', '+after'],
      '*** End Patch',
    ];
    const [report] = await run.model.turn(execCommand({ cmd: ["apply_patch <<'EOF'", ...patch, 'EOF'].join('\n') }));
    expect(report).toContain('Success. Updated the following files:');
    await expectDone(run);
    expect(await readFile(at('sub/deep/new.txt'), 'utf8')).toBe('brand\nnew ü\n');
    expect(await readFile(at('changed.txt'), 'utf8')).toBe('one\nzwei\nthree\n');
    expect((await stat(at('changed.txt'))).mode & 0o777).toBe(0o755);
    expect(await readFile(at('moved/there.txt'), 'utf8')).toBe('after\n');
    expect((await readdir(run.folder)).sort()).toEqual(['changed.txt', 'moved', 'sub']);
    // The agent did it by file methods, not by a program.
    expect(run.recorder.requests('process/start')).toEqual([]);
  });

  it('takes several megabytes of output without a byte missing', async () => {
    const run = await startAgent(server);
    const [report] = await run.model.turn(execCommand({ cmd: million, yield_time_ms: 30_000 }));
    expect(commandReport(report)).toMatchObject({ exitCode: 0, tokens: millionBytes / 4 });
    expect(commandReport(report).output).toMatch(/\n999999\n1000000\n$/);
    await expectDone(run);
    expect(outputOf(run)).toHaveLength(millionBytes);
  });

  it('reads instructions and skills of its project', async () => {
    const run = await startAgent(server, async (folder) => {
      const skill = join(folder, '.agents', 'skills', 'greeting');
      await mkdir(skill, { recursive: true });
      await writeFile(join(folder, 'AGENTS.md'), 'Always greet the walrus.\n');
      await writeFile(
        join(skill, 'SKILL.md'),
        '---\nname: greeting\ndescription: How walruses are greeted.\n---\nHum.\n',
      );
    });
    await expectDone(run);
    expect(run.model.input).toContain('Always greet the walrus.');
    expect(run.model.input).toContain('How walruses are greeted.');
  });

  it('looks at an image', async () => {
    const run = await startAgent(server);
    await writeFile(join(run.folder, 'pixel.png'), Buffer.from(png, 'base64'));
    const [report] = await run.model.turn(viewImage('pixel.png'));
    expect(report).toMatchObject([{ type: 'input_image', image_url: `data:image/png;base64,${png}` }]);
    await expectDone(run);
  });

  it('is told that there is no such image', async () => {
    const run = await startAgent(server);
    const [report] = await run.model.turn(viewImage('none.png'));
    expect(report).toMatch(/^unable to locate image at `.*\/none\.png`: No such file or directory/);
    await expectDone(run);
  });

  it('resumes its session after a cut in the middle of a command', async () => {
    const run = await startAgent(server);
    const command = await startHeld(run, 'echo after');
    run.proxy.cut();
    await command.release();
    expect(await command.ended).toMatchObject({ exitCode: 0, output: 'after\n' });
    await expectDone(run);
    const [first, second] = run.recorder.requests('initialize');
    expect(first?.params?.['resumeSessionId']).toBeNull();
    expect(second?.params?.['resumeSessionId']).toEqual(expect.any(String));
  });

  it('leaves a background child of its command alone', async () => {
    const run = await startAgent(server);
    const [report] = await run.model.turn(execCommand({ cmd: 'sleep 300 > /dev/null 2>&1 & echo pid $!' }));
    const pid = Number(/pid (\d+)/.exec(commandReport(report).output)?.[1]);
    onTestFinished(() => void (isRunning(pid) && process.kill(pid, 'SIGKILL')));
    await expectDone(run);
    // The agent terminates every process once it is closed.
    const [terminate] = run.recorder.requests('process/terminate');
    const answer = run.recorder.recorded.find(({ message }) => message.id === terminate?.id && message.result);
    // It does not wait for the answer, and may be gone before.
    expect(terminate).toBeDefined();
    expect([undefined, { running: false }]).toContainEqual(answer?.message.result);
    expect(isRunning(pid)).toBe(true);
  });
});

describe.skipIf(inject('referenceBinary') === null)('the agent on ours alone', () => {
  it('misses nothing of several megabytes although its connection is cut many times', async () => {
    const run = await startAgent('ours');
    const command = await startHeld(run, million);
    run.proxy.addRule({ when: { direction: 'down', aboutEveryBytes: 1_500_000 }, do: 'cut', times: 4 });
    await command.release();
    expect(await command.ended).toMatchObject({ exitCode: 0, tokens: millionBytes / 4 });
    await expectDone(run);
    expect(run.proxy.counters.cuts).toBeGreaterThan(1);
  });
});
