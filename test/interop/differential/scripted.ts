/** Sequences at bounds that generated ones hardly meet. Pure. */
import { call, type Params, type Step } from './step.js';

const start = (processId: string, script: string, changes: Params = {}): Step =>
  call('process/start', {
    ...{ processId, cwd: '$URI', env: { PATH: '/usr/bin:/bin' }, tty: false, pipeStdin: false, arg0: null },
    ...{ argv: ['/bin/sh', '-c', script], ...changes },
  });

const write = (path: string, dataBase64: string): Step => call('fs/writeFile', { path: `$URI/${path}`, dataBase64 });
const link = (target: string, path: string): Step => ({ do: 'host', change: { kind: 'symlink', target, path } });

const http = (url: string, changes: Params = {}): Step =>
  call('http/request', { method: 'GET', url, requestId: 'r', ...changes });

const handles = Array.from({ length: 129 }, (_, index) =>
  call('fs/open', { handleId: `h${index}`, path: '$URI/file', mode: 'read' }),
);
const policy = { inherit: 'none', ignoreDefaultExcludes: true, exclude: [], set: {}, includeOnly: [] };

export const scriptedSequences: readonly { readonly what: string; readonly steps: readonly Step[] }[] = [
  {
    what: 'the end of a file, block by block',
    steps: [
      write('file', 'YWJjZGVm'),
      call('fs/open', { handleId: 'h', path: '$URI/file' }),
      ...[0, 2, 4, 6, 100].map((offset) => call('fs/readBlock', { handleId: 'h', offset, len: 2 })),
      call('fs/readBlock', { handleId: 'h', offset: 4, len: 3 }),
      call('fs/readBlock', { handleId: 'h', offset: 0, len: 1_048_576 }),
      call('fs/remove', { path: '$URI/file' }),
      call('fs/readBlock', { handleId: 'h', offset: 0, len: 9 }),
      call('fs/close', { handleId: 'h' }),
      call('fs/close', { handleId: 'h' }),
      call('fs/readBlock', { handleId: 'h', offset: 0, len: 9 }),
    ],
  },
  { what: 'as many handles as there may be', steps: [write('file', ''), ...handles] },
  {
    what: 'links to folders, loops and links that lead nowhere',
    steps: [
      call('fs/createDirectory', { path: '$URI/d/e' }),
      write('d/f', 'QQ=='),
      ...[link('d', 'to-d'), link('none', 'nowhere'), link('loop', 'loop'), link('../d', 'd/up')],
      ...['to-d', 'nowhere', 'loop', 'd/up/up/f', ''].flatMap((path) => [
        call('fs/getMetadata', { path: `$URI/${path}` }),
        call('fs/canonicalize', { path: `$URI/${path}` }),
        call('fs/readDirectory', { path: `$URI/${path}` }),
        ...[true, false].map((followDirectorySymlinks) =>
          call('fs/walk', {
            path: `$URI/${path}`,
            options: { maxDepth: 5, maxDirectories: 50, maxEntries: 50, followDirectorySymlinks },
          }),
        ),
      ]),
      call('fs/copy', { sourcePath: '$URI/d', destinationPath: '$URI/copied/deep', recursive: true }),
      call('fs/copy', { sourcePath: '$URI/d', destinationPath: '$URI/d/e/again', recursive: true }),
      call('fs/copy', { sourcePath: '$URI/to-d', destinationPath: '$URI/link', recursive: false }),
      call('fs/remove', { path: '$URI/to-d' }),
      call('fs/remove', { path: '$URI/d', recursive: false }),
      call('fs/remove', { path: '$URI/d' }),
    ],
  },
  {
    what: 'paths that are missing',
    steps: [
      ...[1, 1, 0, 2].map((watchId) => call('fs/watchMissing', { watchId, missing: ['$URI/m'] })),
      ...[write('f', ''), link('loop', 'loop'), link('none', 'nowhere')],
      ...['f/m', 'loop', 'loop/m', 'nowhere', 'nowhere/m', 'm/m'].map((path, at) =>
        call('fs/watchMissing', { watchId: 10 + at, missing: [`$URI/${path}`] }),
      ),
      call('fs/watchMissing', { watchId: 23, missing: [] }),
      call('fs/watchMissing', { watchId: 24, missing: ['$URI'] }),
      call('fs/watchMissing', { watchId: 25, missing: Array.from({ length: 64 }, (_, at) => `$URI/m${at}`) }),
      call('fs/watchMissing', { watchId: 26, missing: Array.from({ length: 100 }, (_, at) => `$URI/m${at}`) }),
    ],
  },
  {
    what: 'the environment of a child',
    steps: [
      start('none', 'env | grep -v ^PWD= | grep -v ^EXEC_SERVER_MARK= | sort', { envPolicy: policy }),
      { do: 'awaitClosed', processId: 'none' },
      start('set', 'printf %s "$A.$SECRET_KEY.$B"', {
        env: { PATH: '/usr/bin:/bin', B: 'env' },
        envPolicy: { ...policy, ignoreDefaultExcludes: false, set: { A: 'set', SECRET_KEY: 'k', B: 'set' } },
      }),
      { do: 'awaitClosed', processId: 'set' },
      start('only', 'printf %s "$A.$B.$PATH"', {
        env: {},
        envPolicy: { ...policy, inherit: 'core', set: { A: '1', B: '2' }, includeOnly: ['[AB]', 'B', 'PATH'] },
      }),
      { do: 'awaitClosed', processId: 'only' },
    ],
  },
  {
    what: 'http requests',
    steps: [
      ...['hello', 'none', 'gzip', 'redirect', 'redirect?status=307', 'circle', 'gzip-cut', 'cut'].map((path) =>
        http(`$WEB/${path}`),
      ),
      http('$WEB/redirect', { redirectPolicy: 'stop' }),
      http('$WEB/gzip', { method: 'HEAD' }),
      http('$WEB/hello', { method: 'POST', bodyBase64: 'QQ==' }),
      http('$WEB/hello', { headers: [{ name: 'a', value: 'b' }] }),
      http('http://127.0.0.1:1/', {}),
      ...['nope', 'ftp://x/', 'http://', '', '/hello'].map((url) => http(url)),
      ...['', 'G T', 'gé'].map((method) => http('$WEB/hello', { method })),
      http('$WEB/hello', { headers: [{ name: 'a b', value: 'c' }] }),
      http('$WEB/hello', { headers: [{ name: 'a', value: 'b\nc' }] }),
      http('$WEB/hello', { headers: [{ name: 'a', value: '', valueEnvVar: 'NO_SUCH_VARIABLE' }] }),
      http('$WEB/hello', { headers: [{ name: 'a', value: '', valueEnvVar: 'OPENAI_API_KEY' }] }),
      http('$WEB/hello', { headers: null }),
      http('$WEB/hello', { bodyBase64: '!' }),
      http('$WEB/hello', { redirectPolicy: 'no' }),
      http('$WEB/hello', { timeoutMs: -1 }),
      call('http/request', { method: 'GET', url: '$WEB/hello' }),
    ],
  },
  {
    what: 'names that are not UTF-8',
    steps: [
      write('%FFb', 'QQ=='),
      ...['%FFb', '%FE'].flatMap((path) => [
        call('fs/readFile', { path: `$URI/${path}` }),
        call('fs/getMetadata', { path: `$URI/${path}` }),
        call('fs/canonicalize', { path: `$URI/${path}` }),
      ]),
      call('fs/open', { handleId: 'h', path: '$URI/%FFb' }),
      call('fs/readBlock', { handleId: 'h', offset: 0, len: 9 }),
      call('fs/copy', { sourcePath: '$URI/%FFb', destinationPath: '$URI/%FFc', recursive: false }),
      call('fs/readDirectory', { path: '$URI' }),
      call('fs/createDirectory', { path: '$URI/%FD/%FC' }),
      call('fs/remove', { path: '$URI/%FFb' }),
      call('fs/remove', { path: '$URI/%FD' }),
    ],
  },
];
