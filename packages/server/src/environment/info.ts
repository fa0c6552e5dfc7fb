/** What `environment/info` tells about the host. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir, hostname, tmpdir, userInfo } from 'node:os';
import { basename } from 'node:path';
import { type EnvironmentInfo, PACKAGE_VERSION } from '@exec-server/protocol';
import { fileUri } from '../paths.js';

/** Every capability of the base protocol. */
const CAPABILITIES = [
  'networkProxyLaunch',
  'networkProxyReviewDomains',
  'networkProxyTransparentTcp',
  'credentialMasking',
  'credentialMaskingCustomProviders',
  'capabilityDiscoverySandbox',
  'fsWatchMissing',
  'capabilityDiscoveryV2',
  'environmentConfigRead',
  'httpHeaderEnvVars',
  'sandboxedFileStreaming',
  'fileWriteStreaming',
  'shellSnapshotV2',
  'windowsMxc',
  'linuxRootWritePreservesDevices',
  'linuxApprovedRootWritePreservesRestrictions',
] as const;

const BUILT: ReadonlySet<string> = new Set<(typeof CAPABILITIES)[number]>(['fsWatchMissing', 'fileWriteStreaming']);

export function readEnvironmentInfo(): EnvironmentInfo {
  const shell = loginShell();
  const temporary = fileUri(tmpdir());
  return {
    shell: { name: basename(shell), path: shell },
    executorVersion: PACKAGE_VERSION,
    providerId: `sha256:${createHash('sha256').update(hostIdentity()).digest('hex')}`,
    cwd: fileUri(process.cwd()),
    userHomeDir: fileUri(homedir()),
    platformOs: process.platform === 'darwin' ? 'macos' : process.platform === 'win32' ? 'windows' : process.platform,
    prependPathDirs: [],
    temporaryDirectories: [temporary],
    tempDir: temporary,
    capabilities: Object.fromEntries(CAPABILITIES.map((name) => [name, BUILT.has(name)])),
  };
}

function loginShell(): string {
  try {
    const { shell } = userInfo();
    if (shell !== null && shell !== '') return shell;
  } catch {
    // The user database may not know the user of a container; the fallback serves.
  }
  return '/bin/sh';
}

/** Stable for a host, and no more than a hash of it leaves the server. */
function hostIdentity(): string {
  try {
    return `${hostname()}\n${readFileSync('/etc/machine-id', 'utf8').trim()}`;
  } catch {
    // Containers and other systems have no such file; the name alone serves.
    return hostname();
  }
}
