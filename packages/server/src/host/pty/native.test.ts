import { WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { loadPty } from './native.js';
import { spawnPty } from './ptyChild.js';

async function failure(promise: Promise<unknown>): Promise<WireError> {
  const thrown: unknown = await promise.catch((error: unknown) => error);
  if (!(thrown instanceof WireError)) throw new Error(`expected a WireError, got ${String(thrown)}`);
  return thrown;
}

describe('the terminal library', () => {
  it('is loaded once', async () => {
    expect(await loadPty()).toBe(await loadPty());
  });

  it('is missing whatever its import throws', async () => {
    for (const thrown of [new Error('could not find the platform-specific package\n\nmore'), 'text', undefined]) {
      const error = await failure(loadPty(() => Promise.reject(thrown)));
      expect([error.reason, error.data.field]).toEqual(['terminalUnavailable', 'tty']);
      expect(error.message).not.toContain('\n');
    }
  });

  it('is missing when it has no native functions', async () => {
    for (const module of [null, {}, { native: null }, { native: { fork: () => undefined } }]) {
      expect((await failure(loadPty(() => Promise.resolve(module)))).reason).toBe('terminalUnavailable');
    }
  });

  it('fails the start that needs it, and only that', async () => {
    const request = { argv: ['true'], cwd: '/', env: {}, stdin: 'pipe' } as const;
    const starting = spawnPty(request, undefined, () => Promise.reject(new Error('no binary')));
    expect((await failure(starting)).message).toBe(
      'this server cannot give a process a terminal: the optional package @lydell/node-pty is not installed where the server is, or does not load (no binary)',
    );
    const child = await spawnPty(request);
    await new Promise((resolve) =>
      child.outputs[0]?.start({ bytes: () => undefined, ended: () => resolve(undefined) }),
    );
    expect(child.exit).toEqual({ code: 0, signal: null });
  });
});
