import type { EnvPolicy } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { buildChildEnvironment } from './environment.js';

const serverEnv = { FOO: '1', FOOBAR: '2', MY_TOKEN: '3', HOME: '/h', PATH: '/bin', TERM: 'xterm', GONE: undefined };

function policy(changes: Partial<EnvPolicy> = {}): EnvPolicy {
  return { inherit: 'all', ignoreDefaultExcludes: false, exclude: [], set: {}, includeOnly: [], ...changes };
}

function build(changes: Partial<EnvPolicy>, env: Record<string, string> = {}): Record<string, string> {
  return buildChildEnvironment({ serverEnv, policy: policy(changes), env });
}

describe('the environment of a child', () => {
  it('is exactly env without a policy', () => {
    expect(buildChildEnvironment({ serverEnv, env: { A: 'a', '': 'empty', 'B=C': 'd' } })).toEqual({
      A: 'a',
      '': 'empty',
      'B=C': 'd',
    });
    expect(buildChildEnvironment({ serverEnv, policy: null, env: {}, metadata: null })).toEqual({});
  });

  it('inherits all, the core names, or nothing', () => {
    expect(build({ inherit: 'all', ignoreDefaultExcludes: true })).toEqual({
      FOO: '1',
      FOOBAR: '2',
      MY_TOKEN: '3',
      HOME: '/h',
      PATH: '/bin',
      TERM: 'xterm',
    });
    expect(build({ inherit: 'core' })).toEqual({ HOME: '/h', PATH: '/bin' });
    expect(build({ inherit: 'none' })).toEqual({});
  });

  it.each<[name: string, changes: Partial<EnvPolicy>, expected: Record<string, string>]>([
    [
      'keeps included names without default excludes',
      { ignoreDefaultExcludes: true },
      { FOO: '1', FOOBAR: '2', MY_TOKEN: '3' },
    ],
    ['drops names that look secret', {}, { FOO: '1', FOOBAR: '2' }],
    ['excludes in any case', { exclude: ['foob*'] }, { FOO: '1' }],
    ['keeps set names only when included', { set: { ZED: 'z', OTHER: 'o' } }, { FOO: '1', FOOBAR: '2', ZED: 'z' }],
    ['sets after the excludes', { inherit: 'none', exclude: ['ZED'], set: { ZED: 'set wins' } }, { ZED: 'set wins' }],
  ])('%s', (_name, changes, expected) => {
    expect(
      build({
        exclude: [],
        includeOnly: ['FOO*', '*TOKEN*', 'ZED'],
        ...changes,
      }),
    ).toEqual(expected);
  });

  it('lays env over the policy unfiltered', () => {
    expect(build({ includeOnly: ['FOO'], exclude: ['OTHER'] }, { FOO: 'mine', OTHER: 'kept', API_KEY: 'k' })).toEqual({
      FOO: 'mine',
      OTHER: 'kept',
      API_KEY: 'k',
    });
  });

  it('lays metadata over env', () => {
    const env = { CODEX_TOOL_CALL_ID: 'mine', CODEX_THREAD_ID: 'mine' };
    expect(buildChildEnvironment({ serverEnv, env, metadata: { toolCallId: 'call-1', threadId: null } })).toEqual({
      CODEX_TOOL_CALL_ID: 'call-1',
      CODEX_THREAD_ID: 'mine',
    });
  });

  it('never passes settings of a server, whatever the source', () => {
    const secret = { CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN: 's', CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE: '1' };
    expect(
      buildChildEnvironment({
        serverEnv: secret,
        policy: policy({ ignoreDefaultExcludes: true, set: secret }),
        env: { ...secret, A: 'a' },
      }),
    ).toEqual({ A: 'a' });
  });

  it('keeps a variable called __proto__', () => {
    const env: Record<string, string> = JSON.parse('{"__proto__":"x"}') as Record<string, string>; // only JSON makes such a key
    expect(Object.entries(buildChildEnvironment({ serverEnv, env }))).toEqual([['__proto__', 'x']]);
  });
});

describe('a name pattern', () => {
  const matches = (pattern: string, name: string): boolean =>
    name in
    buildChildEnvironment({ serverEnv: {}, policy: policy({ set: { [name]: '' }, includeOnly: [pattern] }), env: {} });

  it.each([
    ['*', '', true],
    ['*', 'ANY', true],
    ['', 'A', false],
    ['FOO', 'FOOBAR', false],
    ['FOO?', 'FOO', false],
    ['FOO?', 'FOOD', true],
    ['A?C', 'AéC', true],
    ['A?C', 'A😀C', true],
    ['*B*D', 'ABCBCD', true],
    ['*B*D', 'ABCBCDE', false],
    ['[AB]*', 'AX', false],
    ['[AB]*', '[ab]x', true],
    ['A.C', 'ABC', false],
    ['a**b', 'AB', true],
  ])('%j against %j: %j', (pattern, name, expected) => {
    expect(matches(pattern, name)).toBe(expected);
  });

  it('costs no more than pattern times name', () => {
    expect(matches(`${'*a'.repeat(500)}b`, 'a'.repeat(5000))).toBe(false);
  });
});
