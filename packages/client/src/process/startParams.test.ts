import { expect, it } from 'vitest';
import { startParams, toCwd } from './startParams.js';

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

it('sends no policy where the environment is to be exactly what is given', () => {
  expect(startParams({ argv: ['env'], envPolicy: null }, 'p', '/')).not.toHaveProperty('envPolicy');
});

it.each([
  ['/a b/ü%/#?', 'file:///a%20b/%C3%BC%25/%23%3F'],
  ['/', 'file:///'],
  ['C:\\work\\x', 'file:///C:/work/x'],
  ['file:///already', 'file:///already'],
  ['relative', 'relative'],
  ['/half\uD800', 'file:///half%EF%BF%BD'],
])('makes %s a URI', (path, uri) => {
  expect(toCwd(path)).toBe(uri);
});
