/** The table of what differs from the reference on purpose. Pure. */
import { isDeepStrictEqual } from 'node:util';
import type { Seen, Step } from './step.js';

export interface Difference {
  readonly name: string;
  readonly reason: 'extension' | 'safety' | 'honesty';
  readonly why: string;
  readonly explains: (step: Step, reference: Seen, ours: Seen) => boolean;
  /** The rest of the sequence is the same all the same. Default false: it is not compared. */
  readonly goesOn?: boolean;
}

export const differences: readonly Difference[] = [
  {
    name: 'absolute paths',
    reason: 'extension',
    why: 'absolute paths are taken as well as URIs',
    explains: (step, reference) =>
      texts(step).some((text) => text.startsWith('$PATH') || text === '/') &&
      errorText(reference) === 'invalid URI: relative URL without a base',
  },
  {
    name: 'signals by name',
    reason: 'extension',
    why: 'any signal has a name, so the text about an unknown one is another',
    explains: (step, reference, ours) =>
      isCall(step, 'process/signal') && errorCode(reference) === -32602 && errorCode(ours) === -32602,
    goesOn: true,
  },
  {
    name: 'killed on a terminal',
    reason: 'honesty',
    why: 'the exit code of a program killed by a signal is 128 + n on a terminal too; the reference says 1',
    explains: (_, reference, ours) => {
      const [theirs, own] = [resultOf(reference), resultOf(ours)];
      return theirs?.['exitCode'] === 1 && Number(own?.['exitCode']) > 128;
    },
    goesOn: true,
  },
  {
    name: 'missing on a terminal',
    reason: 'honesty',
    why: 'a missing program or folder is the same error on a terminal as on pipes; the reference starts, or has another text',
    explains: (step, reference, ours) =>
      isCall(step, 'process/start') &&
      step.params['tty'] === true &&
      errorCode(ours) === -32603 &&
      (resultOf(reference) !== undefined || errorCode(reference) === -32603),
  },
  {
    name: 'copied onto itself',
    reason: 'safety',
    why: 'the reference empties a file that is copied onto itself',
    explains: (step, reference, ours) =>
      isCall(step, 'fs/copy') &&
      isDeepStrictEqual(resultOf(reference), {}) &&
      isDeepStrictEqual(resultOf(ours), {}) &&
      onlyEmptied(leftOf(reference), leftOf(ours)),
  },
  {
    name: 'an error closes no handle',
    reason: 'safety',
    why: 'the reference closes a handle with the first error on it, so its id is unknown, or free, afterwards',
    explains: (step, reference, ours) => {
      if (isCall(step, 'fs/open')) return isTaken(ours) && resultOf(reference) !== undefined;
      return (
        errorText(reference)?.startsWith('unknown file handle') === true && errorText(ours) !== errorText(reference)
      );
    },
  },
  {
    name: 'a taken handle id is refused first',
    reason: 'safety',
    why: 'the reference opens the file before it looks at the id: it empties it, or tells of another error',
    explains: (step, reference, ours) => isCall(step, 'fs/open') && isTaken(ours) && errorText(reference) !== undefined,
  },
  {
    name: 'a foreign path is refused first',
    reason: 'safety',
    why: 'of two faults ours tells the path first, before anything is looked at; the reference looks at it when it uses it',
    explains: (step, reference, ours) =>
      (errorText(reference) !== undefined || isCall(step, 'fs/watchMissing')) &&
      /^'file:\/\/elsewhere.*' is invalid on 'linux'$/.test(errorText(ours) ?? ''),
    goesOn: true,
  },
  {
    name: 'a write to an ended process',
    reason: 'honesty',
    why: 'the reference accepts and loses it; ours says that stdin is closed',
    explains: (step, reference, ours) =>
      isCall(step, 'process/write') &&
      resultOf(reference)?.['status'] === 'accepted' &&
      resultOf(ours)?.['status'] === 'stdinClosed',
    goesOn: true,
  },
  {
    name: 'a copy that cannot be',
    reason: 'safety',
    why: 'both refuse it and change nothing; where its destination is a looping link or below a file, ours says so first',
    explains: (step, reference, ours) =>
      isCall(step, 'fs/copy') &&
      errorText(reference) !== undefined &&
      /^(Not a directory|Symbolic link loop) /.test(errorText(ours) ?? '') &&
      isDeepStrictEqual(leftOf(reference), leftOf(ours)),
    goesOn: true,
  },
  {
    name: 'missing behind a link to a folder',
    reason: 'extension',
    why: 'the reference watches no path that leads through a link, ours does when the link leads to a folder',
    explains: (step, reference, ours) =>
      isCall(step, 'fs/watchMissing') &&
      texts(step).some((uri) => /^\$URI\/[^/]+\/./.test(uri)) &&
      resultOf(reference)?.['watching'] === false &&
      resultOf(ours)?.['watching'] === true,
    goesOn: true,
  },
  {
    name: 'an array is no object',
    reason: 'safety',
    why: 'the reference reads an array in place of an object by position; ours refuses it',
    explains: (_, reference, ours) =>
      errorText(reference)?.startsWith('invalid length ') === true &&
      errorText(ours)?.startsWith('invalid type: sequence') === true,
    goesOn: true,
  },
  {
    name: 'a walk counts what it lists',
    reason: 'extension',
    why: 'the reference counts links and FIFOs it leaves out towards maxEntries',
    explains: (step, reference, ours) => {
      const [theirs, own] = [resultOf(reference), resultOf(ours)];
      if (!isCall(step, 'fs/walk') || theirs?.['truncated'] !== true) return false;
      const [listed, more] = [theirs['entries'], own?.['entries']];
      return Array.isArray(listed) && Array.isArray(more) && isDeepStrictEqual(more.slice(0, listed.length), listed);
    },
    goesOn: true,
  },
  {
    name: 'the answer to HEAD is as it came',
    reason: 'honesty',
    why: 'no body is decoded, so what is said about it stays; the reference takes encoding and length out',
    explains: (step, reference, ours) =>
      isCall(step, 'http/request') &&
      step.params['method'] === 'HEAD' &&
      resultOf(reference)?.['status'] === resultOf(ours)?.['status'],
    goesOn: true,
  },
  {
    name: 'a file in the place of a folder exists',
    reason: 'honesty',
    why: 'with followSymlinks false the reference says ENOTDIR of a file where a folder is to be made, else EEXIST as ours',
    explains: (step, reference, ours) =>
      isCall(step, 'fs/createDirectory') &&
      errorText(reference) === 'Not a directory (os error 20)' &&
      errorText(ours) === 'File exists (os error 17)',
    goesOn: true,
  },
];

type Call = Extract<Step, { do: 'call' }>;

function isCall(step: Step, method: string): step is Call {
  return step.do === 'call' && step.method === method;
}

function texts(step: Step): string[] {
  if (step.do !== 'call') return [];
  return Object.values(step.params)
    .flat()
    .filter((value) => typeof value === 'string');
}

const errorText = (seen: Seen): string | undefined => ('error' in seen ? seen.error.message : undefined);
const errorCode = (seen: Seen): number | undefined => ('error' in seen ? seen.error.code : undefined);
const isTaken = (seen: Seen): boolean => /^file handle `.*` already exists$/.test(errorText(seen) ?? '');
const leftOf = (seen: Seen): Readonly<Record<string, string>> => ('silence' in seen ? {} : (seen.left ?? {}));

function resultOf(seen: Seen): Readonly<Record<string, unknown>> | undefined {
  if (!('result' in seen) || typeof seen.result !== 'object' || seen.result === null) return undefined;
  return { ...seen.result };
}

/** Whether the trees are the same but for files that are empty on the side of the reference. */
function onlyEmptied(reference: Readonly<Record<string, string>>, ours: Readonly<Record<string, string>>): boolean {
  const names = new Set([...Object.keys(reference), ...Object.keys(ours)]);
  return [...names].every((name) => {
    const [theirs, own] = [reference[name], ours[name]];
    return theirs === own || (theirs !== undefined && /^file \d+ $/.test(theirs) && own?.startsWith(theirs) === true);
  });
}
