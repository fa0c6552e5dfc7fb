import { describe, expect, it } from 'vitest';
import type { BytePath } from '../../paths.js';
import { pathOf } from '../../paths.js';
import { ChangeBatch, type ChangeKind } from './changeBatch.js';

const at = (name: string): BytePath => pathOf(`/${name}`);

/** `created a`, or `removed d/` for a folder. */
function batchOf(steps: readonly string[], most = 10): ChangeBatch {
  const batch = new ChangeBatch(most);
  for (const step of steps) {
    const [kind, name = ''] = step.split(' ');
    // The tests write kinds only.
    batch.add({ kind: kind as ChangeKind, path: at(name.replace('/', '')), isDirectory: name.endsWith('/') });
  }
  return batch;
}

function told(batch: ChangeBatch): string[] {
  return batch.take().changes.map(({ kind, path, isDirectory }) => `${kind} ${path.slice(1)}${isDirectory ? '/' : ''}`);
}

describe('changes of one path between two tellings', () => {
  it.each([
    [['created a', 'modified a'], ['created a']],
    [['created a', 'modified a', 'removed a'], []],
    [['modified a', 'modified a'], ['modified a']],
    [['modified a', 'removed a'], ['removed a']],
    [['removed a', 'created a'], ['modified a']],
    [
      ['removed d/', 'created d/'],
      ['removed d/', 'created d/'],
    ],
    [
      ['removed a', 'created a/'],
      ['removed a', 'created a/'],
    ],
    [['removed a/', 'created a', 'removed a'], ['removed a/']],
    [['created d/', 'removed d/', 'created d'], ['created d']],
  ])('%j are told as %j', (steps, expected) => {
    expect(told(batchOf(steps))).toEqual(expected);
  });

  it('stand where the last of them was, so that a new folder is told before what is in it', () => {
    expect(told(batchOf(['modified d/', 'modified b', 'removed d/', 'created d/', 'created x']))).toEqual([
      'modified b',
      'removed d/',
      'created d/',
      'created x',
    ]);
  });
});

describe('a full batch', () => {
  it('drops changes of further paths and says so once', () => {
    const batch = batchOf(['created a', 'created b', 'created c', 'modified a'], 2);
    expect(batch.take()).toMatchObject({ changes: [{ path: '/b' }, { path: '/a' }], overflow: true });
    expect(batch.isEmpty).toBe(true);
    batch.add({ kind: 'created', path: at('c'), isDirectory: false });
    expect(batch.take()).toMatchObject({ changes: [{ path: '/c' }], overflow: false });
  });

  it('has something to tell when all it knows is that changes were missed', () => {
    const batch = batchOf([]);
    expect(batch.isEmpty).toBe(true);
    batch.lost();
    expect(batch.isEmpty).toBe(false);
    expect(batch.take()).toEqual({ changes: [], overflow: true });
  });
});
