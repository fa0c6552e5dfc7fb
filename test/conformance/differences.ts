/** What may differ from the recorded conversations, and why. Everything else is a failure. `docs/protocol.md` shows this table. */
import { type Difference, EXTRA, EXTRA_OUTPUT } from '../support/replay/difference.js';
import { type JsonObject, textOf } from '../support/replay/transcript.js';

/** What a process is called that runs where the recorded server refused to start one. */
const ASIDE = 'aside';
const DISCOVERY = ['capabilityRoots/discoverV1', 'capabilities/discoverV2', 'environmentConfig/read'];

export const differences: readonly Difference[] = [
  {
    id: 'moreMembers',
    what: 'results, notifications and errors have additional members',
    reason: 'extension',
    // Not an element more of a list.
    forgives: ({ path, expected }) =>
      expected === undefined &&
      /^(result|params|error\.data)(\.|$)/.test(path) &&
      !/\.\d+$|^(result|params)$/.test(path),
  },
  {
    id: 'executorVersion',
    what: '`executorVersion` is the version of this server',
    reason: 'extension',
    forgives: ({ path, actual }) => /\bexecutorVersion$/.test(path) && typeof actual === 'string',
  },
  {
    id: 'capabilities',
    what: 'a capability that this server lacks is false, and its methods (`capabilityRoots/discoverV1`, `capabilities/discoverV2`, `environmentConfig/read`) are -32601',
    reason: 'hostLimit',
    forgives: ({ path, actual }, exchange) =>
      (/\bcapabilities\.\w+$/.test(path) && actual === false) ||
      (DISCOVERY.includes(methodOf(exchange.request)) && errorOf(exchange.actual)?.['code'] === -32601),
  },
  {
    id: 'absolutePaths',
    what: 'an absolute path is taken in the place of its URI; the reference refuses it',
    reason: 'extension',
    forgives: ({ path, actual }, { request, expected, actual: message }) =>
      path === EXTRA
        ? paramsOf(message)['processId'] === ASIDE && /^process\/(exited|closed)$/.test(methodOf(message))
        : messageOf(expected) === 'invalid URI: relative URL without a base' &&
          Object.values(paramsOf(request)).some((value) => textOf(value).startsWith('/')) &&
          (path === 'error' ? actual === undefined : path === 'result'),
    restate: (request) =>
      methodOf(request) === 'process/start' && textOf(paramsOf(request)['cwd']).startsWith('/')
        ? { ...request, params: { ...paramsOf(request), processId: ASIDE } }
        : undefined,
  },
  {
    id: 'moreMethods',
    what: 'methods that the reference does not have are served',
    reason: 'extension',
    forgives: ({ path }, { request, actual }) => {
      if (methodOf(request) === 'process/list') {
        return path === 'error' ? actual['error'] === undefined : path === 'result';
      }
      return (
        methodOf(request) === 'process/resize' &&
        ((path === 'error.code' && messageOf(actual) === 'missing field `processId`') || path === 'error.message')
      );
    },
  },
  {
    id: 'signals',
    what: '`process/signal` knows every signal by its name, and reaches the foreground job of a terminal, which the reference misses',
    reason: 'extension',
    forgives: ({ path, actual }, { request, scenario }) => {
      if (path === EXTRA_OUTPUT) {
        return scenario === '054-tty-signal-leader-only' && /^(job\r\n)?(rc=9\r\n)?$/.test(textOf(actual));
      }
      if (scenario === '054-tty-signal-leader-only' && actual !== undefined) {
        // Its shell goes on behind the job, and may be done before it is terminated.
        return (path === 'result.running' && !actual) || (path === 'params.exitCode' && actual === 0);
      }
      return (
        methodOf(request) === 'process/signal' &&
        (path === 'error.message'
          ? textOf(actual).endsWith(' or the name of a signal such as `SIGTERM`')
          : paramsOf(request)['signal'] === 'SIGINT')
      );
    },
  },
  {
    id: 'terminals',
    what: 'a terminal tells what a pipe tells: 128 + n for a death by signal, `spawnNotFound` for a missing program, the default path without `PATH`; the reference says 1, `spawnFailed`, and fails',
    reason: 'safety',
    forgives: ({ path, expected, actual }, exchange) => {
      if (path.endsWith('exitCode')) return expected === 1 && Number(actual) > 128;
      if (exchange.scenario !== '022-spawn-errors-tty') return false;
      if (path === EXTRA) return paramsOf(exchange.actual)['processId'] === 'c';
      return (
        paramsOf(exchange.request)['tty'] === true &&
        textOf(messageOf(exchange.expected)).startsWith('Unable to spawn ') &&
        (exchange.actual['error'] === undefined || errorOf(exchange.actual)?.['message'] === NOT_FOUND)
      );
    },
  },
  {
    id: 'expiredTexts',
    what: 'what has expired is told apart from what never was',
    reason: 'extension',
    slow: true,
    forgives: ({ path, expected, actual }) =>
      path === 'error.message' &&
      textOf(expected).startsWith('unknown process id ') &&
      textOf(actual).startsWith(`${textOf(expected)}: `),
  },
  {
    id: 'stdinClosed',
    what: 'a write to a process that has ended or closed its stdin is `stdinClosed`; the reference accepts and loses it, or fails with -32603',
    reason: 'safety',
    forgives: ({ path }, { request, actual }) =>
      methodOf(request) === 'process/write' &&
      (actual['result'] as JsonObject | undefined)?.['status'] === 'stdinClosed' &&
      ['error', 'result', 'result.status'].includes(path),
  },
  {
    id: 'limits',
    what: 'a frame may be as large as a message (64 MiB), 4 MiB of output are kept, and a chunk has up to 64 KiB; the reference: 16 MiB, 1 MiB, 8 KiB',
    reason: 'extension',
    forgives: ({ path, expected, actual }, { scenario, actual: message }) => {
      if (scenario === '140-message-limits') {
        return path === 'closeCode' ? actual === undefined : path === EXTRA && message['id'] === 10;
      }
      return path.endsWith('.chunk') && expected === '<BYTES 8192>' && bytesOf(textOf(actual)) > 8_192;
    },
  },
  {
    id: 'mark',
    what: 'a process has the variable `EXEC_SERVER_MARK` besides those asked for: by it none is left behind',
    reason: 'safety',
    forgives: () => false,
    strip: (output) => output.replaceAll(/^EXEC_SERVER_MARK=[^\n]*(\n|$)/gm, ''),
  },
  {
    id: 'firstRead',
    what: 'after a resume the pushes of a process wait for its first `process/read`, for 30 s at most; in the reference what was written meanwhile and is not read is lost',
    reason: 'safety',
    slow: true,
    forgives: () => false,
    patienceMs: (scenario) => (scenario === '074-close-frame-detaches' ? 40_000 : undefined),
  },
  {
    id: 'orderlyEnd',
    what: 'at the end of input requests that were read are answered, and a server that stops says so by a close frame; the reference drops both',
    reason: 'safety',
    forgives: ({ path, expected, actual }, { scenario, actual: message }) =>
      path === 'closeCode'
        ? scenario === '150-sigterm' && expected === 1006 && actual === 4001
        : path === EXTRA && scenario === '101-stdio-eof-kills' && message['id'] === 3 && message['error'] === undefined,
  },
  {
    id: 'foreignHost',
    what: 'a `Host` that is a name other than `localhost` is 403 unless it is allowed: it may be a page that rebound a name',
    reason: 'safety',
    forgives: ({ path }, { request, actual }) =>
      ['status', 'body'].includes(path) &&
      actual['status'] === 403 &&
      ((request?.['headers'] ?? {}) as JsonObject)['Host'] === 'example.org',
  },
];

const NOT_FOUND = 'No such file or directory (os error 2)';

function errorOf({ error }: JsonObject): JsonObject | undefined {
  return error as JsonObject | undefined;
}

function messageOf(message: JsonObject): JsonObject[string] {
  return errorOf(message)?.['message'];
}

function methodOf(message: JsonObject | undefined): string {
  return textOf(message?.['method']);
}

function paramsOf(message: JsonObject | undefined): JsonObject {
  return (message?.['params'] ?? {}) as JsonObject;
}

function bytesOf(base64: string): number {
  return Buffer.from(base64, 'base64').length;
}
