import { type RequestMethod, WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { decodeAck, decodeParams } from './decodeParams.js';

function refusal(method: RequestMethod, params: unknown): { text: string; field: string | undefined } {
  try {
    decodeParams(method, params);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    expect(error).toMatchObject({ code: -32602, reason: 'invalidParams' });
    return { text: error.message, field: error.data.field };
  }
  throw new Error('the params were taken');
}

const start = (changes: object): object => ({
  processId: 'p',
  argv: ['/bin/true'],
  cwd: 'file:///tmp',
  env: {},
  tty: false,
  ...changes,
});
const without = (name: string): object =>
  Object.fromEntries(Object.entries(start({})).filter(([member]) => member !== name));

const open = (mode: unknown): object => ({ handleId: 'h', path: 'file:///', mode });

const initialize: readonly (readonly [params: unknown, text: string, field: string])[] = [
  [undefined, 'invalid type: null, expected struct InitializeParams', 'params'],
  [null, 'invalid type: null, expected struct InitializeParams', 'params'],
  ['x', 'invalid type: string "x", expected struct InitializeParams', 'params'],
  [{}, 'missing field `clientName`', 'clientName'],
  [{ clientName: 7 }, 'invalid type: number, expected a string', 'clientName'],
  [{ clientName: null }, 'invalid type: null, expected a string', 'clientName'],
  [{ clientName: 'x', resumeSessionId: 5 }, 'invalid type: number, expected a string', 'resumeSessionId'],
  [{ clientName: 'x', leaseMs: -1 }, 'invalid number', 'leaseMs'],
  [
    { clientName: 'x', extensions: { flowControl: 'yes' } },
    'invalid type: string "yes", expected a boolean',
    'extensions.flowControl',
  ],
];

const starts: readonly (readonly [params: unknown, text: string, field: string])[] = [
  [without('processId'), 'missing field `processId`', 'processId'],
  [without('argv'), 'missing field `argv`', 'argv'],
  [without('cwd'), 'missing field `cwd`', 'cwd'],
  [without('env'), 'missing field `env`', 'env'],
  [without('tty'), 'missing field `tty`', 'tty'],
  [{}, 'missing field `processId`', 'processId'],
  [start({ argv: [1] }), 'invalid type: number, expected a string', 'argv[0]'],
  [start({ argv: 'true' }), 'invalid type: string "true", expected a sequence', 'argv'],
  [start({ env: null }), 'invalid type: null, expected a map', 'env'],
  [start({ env: [] }), 'invalid type: sequence, expected a map', 'env'],
  [start({ env: { A: 1 } }), 'invalid type: number, expected a string', 'env.A'],
  [start({ tty: 'yes' }), 'invalid type: string "yes", expected a boolean', 'tty'],
  [start({ tty: null }), 'invalid type: null, expected a boolean', 'tty'],
  [start({ pipeStdin: null }), 'invalid type: null, expected a boolean', 'pipeStdin'],
  [start({ enforceManagedNetwork: null }), 'invalid type: null, expected a boolean', 'enforceManagedNetwork'],
  [start({ envPolicy: 5 }), 'invalid type: number, expected struct ExecEnvPolicy', 'envPolicy'],
  [start({ envPolicy: {} }), 'missing field `inherit`', 'envPolicy.inherit'],
  [start({ sandbox: {} }), 'missing field `permissions`', 'sandbox.permissions'],
];

const others: readonly (readonly [method: RequestMethod, params: unknown, text: string, field: string])[] = [
  ['process/read', { processId: 'p', afterSeq: -1 }, 'invalid number', 'afterSeq'],
  ['process/read', { processId: 'p', afterSeq: '1' }, 'invalid type: string "1", expected u64', 'afterSeq'],
  ['process/read', { processId: 'p', waitMs: -1 }, 'invalid number', 'waitMs'],
  ['process/read', { processId: 'p', waitMs: 1.5 }, 'invalid number', 'waitMs'],
  ['process/read', { processId: 'p', maxBytes: {} }, 'invalid type: map, expected usize', 'maxBytes'],
  ['process/read', {}, 'missing field `processId`', 'processId'],
  ['process/write', { processId: 'p', writeId: '1' }, 'missing field `chunk`', 'chunk'],
  [
    'process/write',
    { processId: 'p', chunk: 'eA==', writeId: 7 },
    'invalid type: number, expected a string',
    'writeId',
  ],
  ['process/signal', { processId: 'p', signal: 2 }, 'invalid type: number, expected string or map', 'signal'],
  ['process/signal', { processId: 'p', signal: null }, 'invalid type: null, expected string or map', 'signal'],
  ['process/signal', { processId: 'p' }, 'missing field `signal`', 'signal'],
  ['process/terminate', {}, 'missing field `processId`', 'processId'],
  ['fs/readFile', 'x', 'invalid type: string "x", expected struct WireFsReadFileParams', 'params'],
  ['fs/walk', { path: 'file:///', options: 5 }, 'invalid type: number, expected struct WalkOptions', 'options'],
  ['fs/open', open({}), 'invalid value: map, expected map with a single key', 'mode'],
  ['fs/open', open({ a: 1 }), 'unknown variant `a`, expected `read` or `replace`', 'mode'],
  ['fs/open', open({ read: 1 }), 'invalid type: number, expected unit', 'mode'],
  ['fs/open', open({ a: 1, b: 2 }), 'invalid value: map, expected map with a single key', 'mode'],
  ['fs/open', open(5), 'invalid type: number, expected string or map', 'mode'],
  ['environment/status', [], 'invalid type: sequence, expected unit', 'params'],
  ['environment/status', 'x', 'invalid type: string "x", expected unit', 'params'],
  ['environment/info', { x: 1 }, 'invalid type: map, expected unit', 'params'],
];

describe('params that do not fit', () => {
  it.each(initialize)('of initialize: %j', (params, text, field) => {
    expect(refusal('initialize', params)).toEqual({ text, field });
  });

  it.each(starts)('of process/start: %j', (params, text, field) => {
    expect(refusal('process/start', params)).toEqual({ text, field });
  });

  it.each(others)('of %s: %j', (method, params, text, field) => {
    expect(refusal(method, params)).toEqual({ text, field });
  });

  it('name an unknown variant and those there are', () => {
    const envPolicy = { inherit: 'some', ignoreDefaultExcludes: true, exclude: [], set: {}, includeOnly: [] };
    expect(refusal('process/start', start({ envPolicy }))).toEqual({
      text: 'unknown variant `some`, expected one of `core`, `all`, `none`',
      field: 'envPolicy.inherit',
    });
  });

  it('are told in a short text, however long they are', () => {
    expect(refusal('process/start', start({ tty: 'x'.repeat(1_000_000) })).text.length).toBeLessThan(300);
  });

  it.each([[], [1, 'a'], true, 5, ''].map((params) => [params]))('as %j never pass for an object', (params) => {
    expect(refusal('process/start', params).text).toContain('expected struct ExecParams');
  });
});

describe('params that fit', () => {
  it('may hold null where the base protocol takes it, and members nobody knows', () => {
    const nulls = { arg0: null, envPolicy: null, sandbox: null, managedNetwork: null, networkProxy: null };
    expect(decodeParams('process/start', start({ ...nulls, shellSnapshot: null, metadata: null, unknown: 1 }))).toEqual(
      start({ ...nulls, shellSnapshot: null, metadata: null }),
    );
  });

  it.each([[undefined], [null], [{}]])('of a method without parameters are %j', (params) => {
    expect(() => decodeParams('environment/status', params)).not.toThrow();
  });

  it('hold durations of 64 bits', () => {
    const params = JSON.parse('{"processId":"p","waitMs":18446744073709551615}') as unknown;
    expect(decodeParams('process/read', params).waitMs).toBe(2 ** 64);
  });
});

describe('an acknowledgement', () => {
  it.each([
    [undefined],
    [null],
    [{}],
    [{ processId: 'p' }],
    [{ processId: 'p', seq: -1 }],
    [{ processId: 'p', seq: 1.5 }],
  ])('of %j does not fit', (params) => {
    expect(decodeAck(params)).toBeUndefined();
  });

  it('has a process and a seq', () => {
    expect(decodeAck({ processId: 'p', seq: 3, extra: 1 })).toEqual({ processId: 'p', seq: 3 });
  });
});
