/** Generates sequences of file requests in a small world of names, so that they meet. Pure. */
import fc from 'fast-check';
import { brokenParams } from './broken.js';
import { call, type HostChange, type Params, type Step } from './step.js';

/** A FIFO that is made first. Nothing writes to it: the reference would never answer again. */
const fifo = 'pipe';

const segment = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('a', 'b', 'c') },
  { weight: 1, arbitrary: fc.constantFrom('ü', 'sp ace', '.hidden', '100%', 'q?#', 'x'.repeat(255)) },
);
const name = fc.oneof(
  { weight: 5, arbitrary: segment },
  { weight: 3, arbitrary: fc.array(segment, { minLength: 2, maxLength: 3 }).map((parts) => parts.join('/')) },
);
const readable = fc.oneof({ weight: 12, arbitrary: name }, { weight: 1, arbitrary: fc.constantFrom('', fifo) });

const escaped = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** Ways to spell the URI of a path, good and bad. */
function uriOf(paths: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const spellings: ((path: string) => string)[] = [
    (path) => `$URI/${path}/`,
    (path) => `$URI/./${path}`,
    (path) => `$URI/none/../${path}`,
    (path) => `file:$PATH/${path}`,
    (path) => `file://localhost$PATH/${path}`,
    (path) => `file://elsewhere$PATH/${path}`,
    (path) => `http://localhost/${path}`,
    (path) => `$URI/${path}?query`,
    (path) => `$URI/${path}#fragment`,
    (path) => `$URI/${path}%00`,
    (path) => `$URI/${path}%2F`,
    (path) => `relative/${path}`,
    (path) => `$PATH/${path}`,
    () => '',
  ];
  return fc.oneof(
    { weight: 30, arbitrary: paths.map(plainUri) },
    {
      weight: 1,
      arbitrary: fc.tuple(paths, fc.constantFrom(...spellings)).map(([path, spell]) => spell(escaped(path))),
    },
  );
}

const plainUri = (path: string): string => (path === '' ? '$URI' : `$URI/${escaped(path)}`);

const good64 = fc.uint8Array({ maxLength: 40 }).map((data) => Buffer.from(data).toString('base64'));
const any64 = fc.oneof(
  { weight: 12, arbitrary: good64 },
  { weight: 1, arbitrary: fc.constantFrom('@@', 'QQ', 'QQ=', 'QR==', '-_==', 'QUJD\n') },
);

const spelled: Values = { uri: uriOf(readable), target: uriOf(name), base64: any64 };
/** Without a fault of their own. */
const plain: Values = { uri: readable.map(plainUri), target: name.map(plainUri), base64: good64 };
const flag = fc.boolean();
const small = fc.nat({ max: 64 });

/** Members that may be left out or null. */
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof({ weight: 2, arbitrary: value }, fc.constant(null), { weight: 2, arbitrary: fc.constant(undefined) });

type Shape = Readonly<Record<string, fc.Arbitrary<unknown>>>;

const followSymlinks = optional(flag);
const walkOptions = fc.record({
  maxDepth: fc.constantFrom(0, 1, 2, 64, 65),
  maxDirectories: fc.constantFrom(0, 1, 2, 100, 10_000, 10_001),
  maxEntries: fc.constantFrom(0, 1, 3, 100, 50_000, 50_001),
  followDirectorySymlinks: flag,
  pruneHiddenDirectories: flag,
});
const blockLength = fc.oneof({ weight: 8, arbitrary: small }, fc.constant(1_048_577));
const handleId = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('h', 'i') },
  { weight: 1, arbitrary: fc.constantFrom('', 'x'.repeat(32), 'x'.repeat(33)) },
);

interface Request {
  readonly weight: number;
  readonly method: string;
  readonly params: Shape;
}

interface Values {
  readonly uri: fc.Arbitrary<string>;
  /** Never the FIFO. */
  readonly target: fc.Arbitrary<string>;
  readonly base64: fc.Arbitrary<string>;
}

const lookingRequests = ({ uri, target }: Values): Request[] => [
  { weight: 4, method: 'fs/readFile', params: { path: uri, followSymlinks } },
  { weight: 4, method: 'fs/getMetadata', params: { path: uri, followSymlinks } },
  { weight: 2, method: 'fs/canonicalize', params: { path: uri } },
  { weight: 3, method: 'fs/readDirectory', params: { path: uri } },
  { weight: 3, method: 'fs/walk', params: { path: uri, options: walkOptions } },
  {
    weight: 1,
    method: 'fs/watchMissing',
    params: { watchId: fc.nat({ max: 3 }), missing: fc.array(target, { maxLength: 3 }) },
  },
];

const removal = ({ uri }: Values): Request => ({
  weight: 4,
  method: 'fs/remove',
  params: { path: uri, recursive: optional(flag), force: optional(flag), followSymlinks },
});

const changingRequests = (values: Values): Request[] => [
  removal(values),
  { weight: 7, method: 'fs/writeFile', params: { path: values.target, dataBase64: values.base64, followSymlinks } },
  {
    weight: 6,
    method: 'fs/createDirectory',
    params: { path: values.target, recursive: optional(flag), followSymlinks },
  },
  { weight: 6, method: 'fs/copy', params: { sourcePath: values.uri, destinationPath: values.target, recursive: flag } },
];

/** A handle stays with the file that was opened, and a whole file is put in its place on one side only: they do not mix. */
const handleRequests = (values: Values): Request[] => [
  { ...removal(values), weight: 1 },
  {
    weight: 5,
    method: 'fs/open',
    params: { handleId, path: values.uri, mode: fc.constantFrom('read', 'replace', undefined) },
  },
  { weight: 4, method: 'fs/readBlock', params: { handleId, offset: small, len: blockLength } },
  { weight: 4, method: 'fs/writeBlock', params: { handleId, offset: small, chunk: values.base64 } },
  { weight: 2, method: 'fs/close', params: { handleId } },
];

function callsOf(requestsOf: (values: Values) => Request[]): fc.Arbitrary<Step> {
  const oneOf = (requests: Request[], change: (params: Params) => fc.Arbitrary<Params>): fc.Arbitrary<Step> =>
    fc.oneof(
      ...requests.map(({ weight, method, params }) => ({
        weight,
        arbitrary: fc
          .record(params)
          .chain(change)
          .map((params) => call(method, params)),
      })),
    );
  return fc.oneof(
    { weight: 9, arbitrary: oneOf(requestsOf(spelled), fc.constant) },
    { weight: 1, arbitrary: oneOf(requestsOf(plain), brokenParams) },
  );
}

const hostChange: fc.Arbitrary<HostChange> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('symlink' as const),
      target: fc.constantFrom('a', 'b', '../a', '.', 'none', '$PATH/b', '$PATH/a/b', 'c'),
      path: name,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('chmod' as const),
      mode: fc.constantFrom(0o600, 0o755, 0o4755),
      path: name,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('makeFolder' as const), path: name }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('writeFile' as const), text: fc.constant('host'), path: name }),
  },
);

function sequenceOf(calls: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> {
  const step = fc.oneof(
    { weight: 5, arbitrary: calls },
    { weight: 1, arbitrary: hostChange.map((change): Step => ({ do: 'host', change })) },
  );
  return fc
    .array(step, { minLength: 3, maxLength: 16 })
    .map((steps) => [{ do: 'host', change: { kind: 'makeFifo', path: fifo } }, ...steps]);
}

export const pathSequence = sequenceOf(callsOf((values) => [...lookingRequests(values), ...changingRequests(values)]));
export const handleSequence = sequenceOf(callsOf(handleRequests));
