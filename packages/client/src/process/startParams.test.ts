import { expect, it } from 'vitest';
import type { StartOptions } from './startParams.js';
import { extensionOf, startParams, toCwd } from './startParams.js';

it('fills in the defaults: server cwd, inherited environment without secrets, no stdin, no terminal', () => {
  expect(startParams({ argv: ['ls'] }, 'p', 'file:///srv')).toEqual({
    processId: 'p',
    argv: ['ls'],
    cwd: 'file:///srv',
    env: {},
    tty: false,
    envPolicy: { inherit: 'all', ignoreDefaultExcludes: false, exclude: [], set: {}, includeOnly: [] },
  });
});

it.each(['srv', './srv', '', '~/x'])('refuses a folder that is no absolute path: %j', (cwd) => {
  expect(() => toCwd(cwd)).toThrow(/no absolute path of the server, such as \/srv/);
});

it('passes on what is asked for', () => {
  const params = startParams(
    {
      argv: ['sh'],
      cwd: '/tmp',
      env: { A: '1' },
      envPolicy: { inherit: 'core' },
      stdin: 'pipe',
      tty: true,
      arg0: '-sh',
    },
    'p',
    'file:///srv',
  );
  expect(params).toMatchObject({ cwd: 'file:///tmp', env: { A: '1' }, pipeStdin: true, tty: true, arg0: '-sh' });
  expect(params.envPolicy).toMatchObject({ inherit: 'core', exclude: [] });
});

it('passes on size, timeout, linger and adoption, and nothing of them unless asked', () => {
  const extended = { tty: { cols: 132, rows: 50 }, timeoutMs: 10.5, lingerMs: 0, ifExists: 'adopt' } as const;
  const params = startParams({ argv: ['sh'], ...extended }, 'p', '/');
  expect(params).toMatchObject({
    tty: true,
    size: { cols: 132, rows: 50 },
    timeoutMs: 11,
    lingerMs: 0,
    ifExists: 'adopt',
  });
  expect(extensionOf(params)).toBe('a start with a terminal size, timeoutMs, lingerMs, ifExists');
  const plain = startParams({ argv: ['sh'], tty: true }, 'p', '/');
  expect(Object.keys(plain).sort()).toEqual(['argv', 'cwd', 'env', 'envPolicy', 'processId', 'tty']);
  expect(extensionOf(plain)).toBeUndefined();
});

it('sends no policy where the environment is to be exactly what is given', () => {
  expect(startParams({ argv: ['env'], envPolicy: null }, 'p', '/')).not.toHaveProperty('envPolicy');
});

it.each([
  ['/a b/ü%/#?', 'file:///a%20b/%C3%BC%25/%23%3F'],
  ['/', 'file:///'],
  ['C:\\folder\\x', 'file:///C:/folder/x'],
  ['file:///already', 'file:///already'],
  ['/half\uD800', 'file:///half%EF%BF%BD'],
])('makes %s a URI', (path, uri) => {
  expect(toCwd(path)).toBe(uri);
});

it.each([
  ['a shell line', { argv: 'ls -l' }],
  ['nothing, as of an array in the place of the options', ['ls', '-l']],
])('refuses an argv that is no array: %s', (_what, options) => {
  // What a program without types may pass.
  const untyped = options as unknown as StartOptions;
  expect(() => startParams(untyped, 'p', '/')).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', data: { argument: 'argv' } }),
  );
});
