import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostWatches } from '../../../../../test/support/hostGauges.js';
import { until } from '../../../../../test/support/until.js';
import { pathOf } from '../../paths.js';
import type { Change } from './changeBatch.js';
import { type PathBudget, WatchedTree } from './watchedTree.js';

class Budget implements PathBudget {
  left: number;
  constructor(paths: number) {
    this.left = paths;
  }
  take(): boolean {
    if (this.left === 0) return false;
    this.left -= 1;
    return true;
  }
  give(paths: number): void {
    this.left += paths;
  }
}

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tree-'));
  mkdirSync(join(folder, 'a/b'), { recursive: true });
  writeFileSync(join(folder, 'a/file'), '');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
  expect(hostWatches()).toBe(0);
});

function treeWith(budget: Budget, changes: Change[] = []): WatchedTree {
  return new WatchedTree(pathOf(folder), true, budget, {
    touched: () => {},
    changed: (change) => changes.push(change),
    lost: () => {},
  });
}

describe('the paths a connection may watch', () => {
  it('are enough or the tree is not watched, and are given back', async () => {
    const budget = new Budget(3);
    const tree = treeWith(budget);
    await expect(tree.open()).rejects.toMatchObject({ reason: 'tooManyWatches', data: { path: folder } });
    tree.close();
    tree.close();
    expect(budget.left).toBe(3);
  });

  it('are counted while the tree grows and shrinks; where they are used up the watch ends', async () => {
    const budget = new Budget(5);
    const changes: Change[] = [];
    const tree = treeWith(budget, changes);
    await tree.open();
    expect(budget.left).toBe(1);
    rmSync(join(folder, 'a'), { recursive: true });
    await until(() => tree.isTouched, 'the removal is noticed');
    expect(await tree.settle()).toBeUndefined();
    expect(budget.left).toBe(4);
    expect(changes.at(-1)).toEqual({ kind: 'removed', path: pathOf(join(folder, 'a')), isDirectory: true });
    for (const name of ['1', '2', '3', '4', '5']) writeFileSync(join(folder, name), '');
    await until(() => tree.isTouched, 'the files are noticed');
    expect(await tree.settle()).toContain('may be watched per connection');
    tree.close();
    expect(budget.left).toBe(5);
  });
});
