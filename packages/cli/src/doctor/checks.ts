/** What `doctor` looks at: each check runs on a server of its own kind and says what works, in a few words. */
import { readFileSync } from 'node:fs';
import { type Client, isClientError, type RunOptions } from '@exec-server/client';
import { guardCheck } from './guardCheck.js';

export interface Finding {
  readonly name: string;
  readonly works: boolean;
  /** What was seen, or what does not work then. */
  readonly detail: string;
}

export interface Check {
  readonly name: string;
  /** Whether processes can be run at all without it. */
  readonly essential: boolean;
  /** What is said where it fails without words of its own. */
  readonly otherwise: string;
  /** What was seen; throws, or gives undefined, where it does not work. */
  look(client: Client): Promise<string | undefined>;
}

const OLDEST_NODE = 20;
const TIMEOUT_MS = 10_000;

/** The output of a shell line on both streams together; undefined when it failed. */
async function sh(client: Client, script: string, options: RunOptions = {}): Promise<string | undefined> {
  const result = await client.run(['/bin/sh', '-c', script], { timeoutMs: TIMEOUT_MS, ...options });
  return result.exitCode === 0 ? `${result.text()}${result.text('stderr')}`.trim() : undefined;
}

const expected = (seen: string | undefined, wish: string, detail: string): string | undefined =>
  seen === wish ? detail : undefined;

export const checks: readonly Check[] = [
  {
    name: 'node',
    essential: true,
    otherwise: `Node ${process.version} is too old; ${OLDEST_NODE} or later is needed`,
    look: () => {
      const isNew = Number(process.versions.node.split('.')[0]) >= OLDEST_NODE;
      return Promise.resolve(isNew ? `${process.version} on ${process.platform} ${process.arch}` : undefined);
    },
  },
  {
    name: 'processes',
    essential: true,
    otherwise: 'a shell does not run',
    look: async (client) => {
      const { exitCode } = await client.run(['/bin/sh', '-c', 'exit 7'], { timeoutMs: TIMEOUT_MS });
      return exitCode === 7 ? 'a shell runs, and its exit code arrives' : undefined;
    },
  },
  {
    name: 'pipes',
    essential: true,
    otherwise: 'stdin, stdout and stderr of a process do not arrive',
    look: async (client) => {
      const seen = await sh(client, 'read -r line; echo "$line"; echo err >&2', { input: 'in\n' });
      return expected(seen, 'in\nerr', 'stdin, stdout and stderr arrive');
    },
  },
  {
    name: '/dev/stdout',
    essential: false,
    otherwise: '`echo x > /dev/stdout` fails in a process',
    look: async (client) =>
      expected(await sh(client, 'echo x > /dev/stdout'), 'x', '`echo x > /dev/stdout` works in a process'),
  },
  {
    name: '/dev/stderr',
    essential: false,
    otherwise: '`tee /dev/stderr` fails in a process',
    look: async (client) =>
      expected(await sh(client, 'echo x | tee /dev/stderr'), 'x\nx', '`tee /dev/stderr` works in a process'),
  },
  {
    name: '/dev/stdin',
    essential: false,
    otherwise: '`cat /dev/stdin` fails in a process',
    look: async (client) =>
      expected(
        await sh(client, 'cat /dev/stdin', { input: 'in' }),
        'in',
        '`cat /dev/stdin` works in a process, and ends with its input',
      ),
  },
  {
    name: 'terminal',
    essential: false,
    otherwise: 'processes cannot run on a terminal',
    look: async (client) => {
      const tty = { cols: 91, rows: 31 };
      const result = await client.run(['/bin/sh', '-c', 'test -t 0 && stty size'], {
        tty,
        timeoutMs: TIMEOUT_MS,
      });
      return result.exitCode === 0 && result.text().includes('31 91')
        ? 'a process runs on a terminal of the size asked for'
        : undefined;
    },
  },
  {
    name: '/proc',
    essential: false,
    otherwise: 'cannot be read: what leaves its process group is not found when its process is ended',
    look: () => {
      const isOurs = readFileSync('/proc/self/stat', 'latin1').startsWith(`${process.pid} `);
      const hasEnvironment = readFileSync('/proc/self/environ', 'latin1').length > 0;
      return Promise.resolve(isOurs && hasEnvironment ? 'readable, with environments' : undefined);
    },
  },
  {
    name: 'guard',
    essential: false,
    otherwise: 'a process lived on after its server was killed',
    look: () => guardCheck(),
  },
];

/** Never rejects: what is thrown is the finding. */
export async function lookAt(check: Check, client: Client): Promise<Finding> {
  const { name, otherwise } = check;
  try {
    const detail = await check.look(client);
    return { name, works: detail !== undefined, detail: detail ?? otherwise };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const cause = isClientError(error) || error instanceof Error ? text : 'failed';
    return { name, works: false, detail: `${otherwise} (${cause})` };
  }
}
