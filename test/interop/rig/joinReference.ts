/** Our client on the reference, as the bodies of the integration tests take it; every message can be looked at over WebSocket. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { connect } from '@exec-server/client';
import { type FaultProxy, startFaultProxy } from '@exec-server/testing';
import { expect } from 'vitest';
import type { Subject } from '../../support/bodies/subject.js';
import { childrenOf, type ClientOptions, type Joined } from '../../support/links.js';
import { RecordingProxy } from './recordingProxy.js';
import { referenceBinary, startServer } from './servers.js';

export interface JoinedReference extends Joined {
  readonly recorder: RecordingProxy;
  readonly proxy: FaultProxy;
}

/** client → fault proxy → recorder → reference. */
export async function joinReference(options: ClientOptions = {}): Promise<JoinedReference> {
  const folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-reference-'));
  const { program, url } = await startServer('reference', folder);
  const recorder = await RecordingProxy.start(url);
  const proxy = await startFaultProxy({ target: recorder.url });
  const stop = async (): Promise<void> => {
    await proxy.close();
    await recorder.close();
    await program.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    const client = await connect({ ...options, url: proxy.url });
    const { pid } = program;
    const expectClean = async (): Promise<void> => {
      await client.close();
      // A foreign server keeps the session; its processes were terminated one by one.
      expect(await leftOf(pid)).toEqual([]);
      await stop();
    };
    return { client, server: undefined, recorder, proxy, expectClean };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function joinOverStdio(options: ClientOptions = {}): Promise<Joined> {
  const folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-reference-'));
  const command = [referenceBinary(), 'exec-server', '--listen', 'stdio'] as const;
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    const client = await connect({ ...options, command, env: { HOME: folder, CODEX_HOME: folder } });
    return {
      client,
      server: undefined,
      expectClean: async () => {
        await client.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

export const referenceSubjects: readonly Subject[] = [
  { name: 'websocket', extended: false, join: joinReference },
  { name: 'stdio', extended: false, join: joinOverStdio },
];

const CHILDREN_END_WITHIN_MS = 3_000;

async function leftOf(pid: number): Promise<number[]> {
  const deadline = Date.now() + CHILDREN_END_WITHIN_MS;
  for (;;) {
    const children = childrenOf(pid);
    if (children.length === 0 || Date.now() > deadline) return children;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
