/** Names of types, as the texts of the base protocol have them for params that do not fit. Pure. */
import type { RequestMethod } from '@exec-server/protocol';

const methods: Partial<Record<RequestMethod, string>> = {
  initialize: 'InitializeParams',
  'process/start': 'ExecParams',
  'process/read': 'ReadParams',
  'process/write': 'WriteParams',
  'process/signal': 'SignalParams',
  'process/terminate': 'TerminateParams',
  'fs/readFile': 'WireFsReadFileParams',
  'fs/writeFile': 'WireFsWriteFileParams',
  'fs/open': 'WireFsOpenParams',
  'fs/readBlock': 'FsReadBlockParams',
  'fs/writeBlock': 'FsWriteBlockParams',
  'fs/close': 'FsCloseParams',
  'fs/createDirectory': 'WireFsCreateDirectoryParams',
  'fs/remove': 'WireFsRemoveParams',
  'fs/copy': 'WireFsCopyParams',
  'fs/getMetadata': 'WireFsGetMetadataParams',
  'fs/canonicalize': 'WireFsCanonicalizeParams',
  'fs/readDirectory': 'WireFsReadDirectoryParams',
  'fs/walk': 'WireFsWalkParams',
  'fs/watchMissing': 'FsWatchMissingParams',
  'http/request': 'HttpRequestParams',
};

/** By the name of the member; those without one here are maps. */
const members: Readonly<Record<string, string>> = {
  envPolicy: 'ExecEnvPolicy',
  metadata: 'ExecMetadata',
  sandbox: 'WireFileSystemSandboxContext',
  options: 'WalkOptions',
  headers: 'HttpHeader',
};

/** Members whose numbers have the width of the host's memory. */
const sizes = new Set<PropertyKey>(['maxBytes', 'len', 'maxDepth', 'maxDirectories', 'maxEntries']);

/** What an object at this path is called; the path is empty for the params themselves. */
export function objectName(method: RequestMethod, path: readonly PropertyKey[]): string {
  const member = path.findLast((key) => typeof key === 'string');
  const name = member === undefined ? methods[method] : members[member];
  if (name !== undefined) return `struct ${name}`;
  return path.length === 0 ? 'unit' : 'a map';
}

export function integerName(path: readonly PropertyKey[]): string {
  return sizes.has(path.at(-1) ?? '') ? 'usize' : 'u64';
}
