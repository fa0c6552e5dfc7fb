/** The packages of this workspace that are published. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

export const packageNames = ['protocol', 'server', 'client', 'testing', 'cli'] as const;
export type PackageName = (typeof packageNames)[number];

export const scoped = (name: PackageName): string => `@exec-server/${name}`;
export const folderOf = (name: PackageName): string => join(root, 'packages', name);

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** A package and those of the workspace it needs. */
export function closureOf(name: PackageName): readonly PackageName[] {
  const found = new Set<PackageName>([name]);
  for (const member of found) {
    const manifest = JSON.parse(readFileSync(join(folderOf(member), 'package.json'), 'utf8')) as Manifest;
    const needs = Object.keys(manifest.dependencies ?? {});
    for (const other of packageNames) if (needs.includes(scoped(other))) found.add(other);
  }
  return [...found];
}
