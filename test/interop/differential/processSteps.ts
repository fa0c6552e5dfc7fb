/** Generates sequences of process requests whose outcome does not depend on timing. Pure. */
import fc from 'fast-check';
import { brokenParams } from './broken.js';
import { call, type Params, type Step } from './step.js';

const shell = (script: string): string[] => ['/bin/sh', '-c', script];

/** Each writes at most once to each stream, so that chunks can be counted. */
const scripts = fc.constantFrom(
  'exit 0',
  'exit 7',
  'printf out',
  'printf out; printf err >&2; exit 3',
  'kill -9 $$',
  'kill -TERM $$',
  'printf %s "$A-$B"',
  'pwd -P | tr -d "\\n"',
  'printf %s "$0"',
);
const program: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 8, arbitrary: scripts.map(shell) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(['/none/such'], ['printf', 'by path'], ['/'], [''], ['/etc/passwd']),
  },
);

const processId = fc.constantFrom('p', 'q');
const env = fc.record({ PATH: fc.constant('/usr/bin:/bin'), A: fc.constantFrom('1', 'ü'), TERM: fc.constant('dumb') });
const envPolicy = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(undefined, null) },
  {
    weight: 1,
    arbitrary: fc.record({
      inherit: fc.constantFrom('all', 'core', 'none'),
      ignoreDefaultExcludes: fc.boolean(),
      exclude: fc.constantFrom([], ['A*'], ['?']),
      set: fc.constantFrom({}, { B: 'set', A_KEY: 'k' }),
      includeOnly: fc.constantFrom([], ['P*', 'B']),
    }),
  },
);

/** Under an id of its own, as it is told before an id that is taken. */
const nothing = fc.constant([
  call('process/start', { processId: 'n', argv: [], cwd: '$URI', env: {}, tty: false, pipeStdin: false, arg0: null }),
]);

const start = fc
  .record({
    processId,
    argv: program,
    cwd: fc.oneof(
      { weight: 12, arbitrary: fc.constant('$URI') },
      fc.constantFrom('$URI/none', 'file:///etc/passwd', 'x', '/'),
    ),
    env,
    envPolicy,
    tty: fc.boolean(),
    pipeStdin: fc.boolean(),
    arg0: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constant('other name')),
  })
  .map((params) =>
    // On a terminal both streams are one, in as many chunks as chance has it.
    params.argv.some((text) => text.includes('>&2')) ? { ...params, tty: false } : params,
  );

/** A program runs to its end, and is asked about afterwards. */
const finished = fc.tuple(start, fc.array(fc.nat({ max: 5 }), { maxLength: 3 })).map(([params, questions]): Step[] => {
  const { processId } = params;
  const afterwards: Step[] = [
    call('process/read', { processId, afterSeq: 0, waitMs: 0 }),
    call('process/read', { processId, afterSeq: 99, waitMs: 0, maxBytes: null }),
    call('process/signal', { processId, signal: 'interrupt' }),
    call('process/terminate', { processId }),
    call('process/start', params),
    call('process/write', { processId, chunk: 'QQ==', writeId: '' }),
  ];
  return [
    call('process/start', params),
    { do: 'awaitClosed', processId },
    ...questions.flatMap((at) => afterwards[at] ?? []),
  ];
});

/** A program that waits for its input is written to, and ended. */
const conversing = fc
  .record({ processId: fc.constantFrom('r', 's'), tty: fc.boolean(), end: fc.constantFrom('terminate', 'interrupt') })
  .map(({ processId, tty, end }): Step[] => {
    const params: Params = {
      ...{ processId, tty, pipeStdin: true, arg0: null, cwd: '$URI', env: { PATH: '/usr/bin:/bin' } },
      argv: ['/bin/cat'],
    };
    // A terminal echoes, and turns the line end into two bytes.
    const doubled = tty ? 2 * 6 : 5;
    return [
      call('process/start', params),
      call('process/write', { processId, chunk: 'aG9sYQo=', writeId: 'w' }),
      call('process/write', { processId, chunk: 'aG9sYQo=', writeId: 'w' }),
      { do: 'awaitOutput', processId, bytes: doubled },
      end === 'terminate'
        ? call('process/terminate', { processId })
        : call('process/signal', { processId, signal: 'interrupt' }),
      { do: 'awaitClosed', processId },
      call('process/terminate', { processId }),
    ];
  });

const good: readonly [method: string, params: Params][] = [
  [
    'process/start',
    {
      processId: 'x',
      argv: ['/bin/true'],
      cwd: '$URI',
      env: {},
      envPolicy: null,
      tty: false,
      pipeStdin: false,
      arg0: null,
    },
  ],
  ['process/read', { processId: 'p', afterSeq: 0, maxBytes: 10, waitMs: 0 }],
  ['process/write', { processId: 'p', chunk: 'QQ==', writeId: 'w' }],
  ['process/signal', { processId: 'p', signal: 'interrupt' }],
  ['process/terminate', { processId: 'p' }],
  ['environment/status', {}],
  ['none/such', { a: 1 }],
];

const refused: fc.Arbitrary<Step[]> = fc
  .constantFrom(...good)
  .chain(([method, params]) => brokenParams(params).map((broken) => [call(method, broken)]));

export const processSequence: fc.Arbitrary<Step[]> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: finished },
      { weight: 1, arbitrary: conversing },
      { weight: 2, arbitrary: fc.oneof({ weight: 9, arbitrary: refused }, nothing) },
    ),
    {
      minLength: 1,
      maxLength: 3,
    },
  )
  .map((parts) => parts.flat());
