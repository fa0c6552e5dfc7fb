/** One run of the real agent on a server: agent → fault proxy → recorder → server, and a scripted model behind the agent. */
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FaultProxy, startFaultProxy } from '@exec-server/testing';
import { expect, onTestFinished } from 'vitest';
import { Program } from './program.js';
import { RecordingProxy } from './recordingProxy.js';
import { ScriptedModel } from './scriptedModel.js';
import { referenceBinary, type ServerName, startServer } from './servers.js';

export interface AgentRun {
  readonly model: ScriptedModel;
  readonly agent: Program;
  readonly server: Program;
  readonly recorder: RecordingProxy;
  readonly proxy: FaultProxy;
  /** The working folder of the agent. */
  readonly folder: string;
}

/** Where each run appends what the agent and the server said, one JSON object a line; undefined for nowhere. */
const log = process.env['EXEC_SERVER_INTEROP_LOG'];

/** Everything it starts and writes is gone when the test is finished, however it ends. */
export async function startAgent(
  serverName: ServerName,
  /** Puts files into the folder before the agent looks at it. */
  prepare: (folder: string) => Promise<void> = async () => {},
): Promise<AgentRun> {
  const root = await mkdtemp(join(tmpdir(), 'exec-server-interop-'));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 3 }));
  const folder = join(root, 'work');
  const home = join(root, 'home');
  await Promise.all([mkdir(folder), mkdir(home)]);
  await prepare(folder);

  const { program: server, url } = await startServer(serverName, root);
  onTestFinished(() => server.stop());
  const recorder = await RecordingProxy.start(url);
  onTestFinished(() => recorder.close());
  const proxy = await startFaultProxy({ target: recorder.url });
  onTestFinished(() => proxy.close());
  const model = await ScriptedModel.start();
  onTestFinished(() => model.close());

  await writeFile(join(home, 'config.toml'), configuration(model.baseUrl));
  const agent = new Program({
    argv: [referenceBinary(), 'exec', '--json', '--skip-git-repo-check', '-C', folder, 'do what the test says'],
    cwd: folder,
    env: { HOME: home, CODEX_HOME: home, CODEX_EXEC_SERVER_URL: proxy.url },
  });
  onTestFinished(() => agent.stop());
  const watched = agent.ended.then((how) => `the agent ended (${how}): ${agent.complaints}`, String);
  void watched.then((why) => model.fail(new Error(why)));
  if (log !== undefined) {
    const test = expect.getState().currentTestName;
    onTestFinished(() => appendFile(log, linesOf([{ test, tools: model.tools }, ...recorder.recorded])));
  }
  return { model, agent, server, recorder, proxy, folder };
}

/** The model has nothing more to ask for, and the agent ends well. */
export async function expectDone({ model, agent }: AgentRun): Promise<void> {
  await model.finish();
  expect(await agent.ended).toBe(0);
}

/** What the server has pushed to the agent so far, of all its commands. */
export function outputOf({ recorder }: AgentRun): Buffer {
  const chunks = recorder.recorded.flatMap(({ message }) => {
    const chunk = message.method === 'process/output' ? message.params?.['chunk'] : undefined;
    return typeof chunk === 'string' ? [Buffer.from(chunk, 'base64')] : [];
  });
  return Buffer.concat(chunks);
}

function linesOf(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

function configuration(baseUrl: string): string {
  return `
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "${baseUrl}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`;
}
