/** The agent's bad days on our server: it lags, it is cut for long, megabytes wait for it; and then it goes on with its work. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { scaled } from '../support/scale.js';
import { until } from '../support/until.js';
import { type AgentRun, expectDone, startAgent } from './rig/agentRun.js';
import { startHeld } from './rig/heldCommand.js';
import { commandReport, execCommand } from './rig/toolCalls.js';

const MIB = 1024 * 1024;

/** Real time: the agent has a clock of its own. Our server keeps a detached session for 80 s. */
const CUT_FOR_MS = scaled(5_000, 40_000);

const flood = (bytes: number): string => `yes 0123456789abcde | head -c ${bytes}`;

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Resident memory of the server, in bytes. */
async function memoryOf({ server }: AgentRun): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** The agent does what it did before, on the same session. */
async function expectGoesOn(run: AgentRun): Promise<void> {
  const [report] = await run.model.turn(execCommand({ cmd: 'echo and on' }));
  expect(commandReport(report)).toMatchObject({ exitCode: 0, output: 'and on\n' });
  const [first, ...later] = run.recorder.requests('initialize');
  expect(first?.params?.['resumeSessionId']).toBeNull();
  for (const { params } of later) expect(params?.['resumeSessionId']).toEqual(expect.any(String));
  await expectDone(run);
}

describe.skipIf(inject('referenceBinary') === null)('the agent on ours, on a bad day,', () => {
  it('lags behind a flood and gets all of it, while the server stays small', async () => {
    const run = await startAgent('ours');
    const bytes = 48 * MIB;
    const command = await startHeld(run, flood(bytes));
    const before = await memoryOf(run);
    run.proxy.stall('down', 3_000);
    await command.release();
    let peak = 0;
    const watching = setInterval(() => void memoryOf(run).then((bytes) => (peak = Math.max(peak, bytes))), 100);
    expect(await command.ended).toMatchObject({ exitCode: 0, tokens: bytes / 4 });
    clearInterval(watching);
    expect(peak - before).toBeLessThan(160 * MIB);
    await expectGoesOn(run);
  });

  it('is cut with 64 MiB of output behind it, and misses nothing', async () => {
    const run = await startAgent('ours');
    const bytes = 64 * MIB;
    const command = await startHeld(run, `${flood(bytes)}; touch done`);
    run.proxy.refuse(true);
    run.proxy.cut();
    await command.release();
    await until(() => exists(join(run.folder, 'done')), 'the output to be written while nobody listens', 30_000);
    run.proxy.refuse(false);
    expect(await command.ended).toMatchObject({ exitCode: 0, tokens: bytes / 4 });
    await expectGoesOn(run);
  });

  it(`is cut for ${CUT_FOR_MS / 1000} s, and its command with it`, async () => {
    const run = await startAgent('ours');
    const command = await startHeld(run, 'echo after; exit 4');
    run.proxy.refuse(true);
    run.proxy.cut();
    await new Promise((resolve) => setTimeout(resolve, CUT_FOR_MS));
    run.proxy.refuse(false);
    await command.release();
    expect(await command.ended).toMatchObject({ exitCode: 4, output: 'after\n' });
    await expectGoesOn(run);
  });
});
