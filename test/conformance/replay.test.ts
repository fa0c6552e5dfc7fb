/** Recorded conversations with the reference server, held with ours. */
import { describe, expect, it } from 'vitest';
import { replay } from '../support/replay/replay.js';
import type { ReplayWire } from '../support/replay/subject.js';
import { readTranscript, type Transcript, transcriptNames } from '../support/replay/transcript.js';
import { full } from '../support/scale.js';
import { differences } from './differences.js';
import { serverArgs, slow } from './held.js';

/** More than the longest file takes beside four others. */
const REPLAY_MS = 120_000;

const used = new Map<string, Set<string>>();
const names = transcriptNames().filter((name) => full || !slow.includes(name));
const runnable = names.filter((name) => read(name).header.needs === undefined);
const cases = runnable.flatMap((name) => wiresOf(read(name)).map((wire) => [name, wire] as const));

function read(name: string): Transcript {
  const { header, lines } = readTranscript(name);
  return { header: { ...header, serverArgs: [...(header.serverArgs ?? []), ...(serverArgs[name] ?? [])] }, lines };
}

/** The file methods over stdio as well; other files are about their transport or depend on it. */
function wiresOf({ header, lines }: Transcript): ReplayWire[] {
  if (header.transport === 'stdio') return ['stdio'];
  const isBound = header.connections !== undefined || lines.some(({ dir }) => dir === 'ctl');
  return /^(08|09)/.test(header.scenario) && !isBound ? ['websocket', 'stdio'] : ['websocket'];
}

describe.concurrent('recorded conversations', () => {
  it.each(cases)(
    '%s is held over %s as it was recorded, but for declared differences',
    async (name, wire) => {
      for (const id of await replay(read(name), wire, differences)) {
        used.set(id, (used.get(id) ?? new Set()).add(name));
      }
    },
    REPLAY_MS,
  );
});

describe('the list of differences', () => {
  it('has no more than fifteen lines, each with an id of its own', () => {
    expect(differences.length).toBeLessThanOrEqual(15);
    expect(new Set(differences.map(({ id }) => id)).size).toBe(differences.length);
  });

  // What the conversations above left in `used`.
  it('has no line that no conversation needs', () => {
    const needed = differences.filter((difference) => full || difference.slow !== true);
    expect(needed.map(({ id }) => id).filter((id) => !used.has(id))).toEqual([]);
  });

  it('is not beside exceptions for files that do not exist', () => {
    const all = transcriptNames();
    expect([...Object.keys(serverArgs), ...slow].filter((name) => !all.includes(name))).toEqual([]);
  });
});
