import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const packages = fileURLToPath(new URL('../../packages', import.meta.url));

/** What each package may import of the others. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  server: ['protocol'],
  client: ['protocol'],
  testing: ['protocol'],
  cli: ['protocol', 'server', 'client', 'testing'],
};

/** Files whose header says they are pure: no host, no timers, no clock of their own. */
const IMPURE =
  /from 'node:|\bsetTimeout\(|\bsetInterval\(|\bsetImmediate\(|\bDate\.now\(|\bperformance\.now\(|\bMath\.random\(/;

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts') ? [path] : [];
  });
}

function importsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

describe('the direction of imports', () => {
  for (const [name, may] of Object.entries(allowed)) {
    it(`lets ${name} import ${may.length === 0 ? 'no other package' : may.join(', ')}`, () => {
      for (const path of sources(join(packages, name, 'src'))) {
        const others = importsOf(path)
          .map((specifier) => /^@exec-server\/([a-z]+)/.exec(specifier)?.[1])
          .filter((other) => other !== undefined);
        const forbidden = others.filter((other) => !may.includes(other));
        expect(forbidden, relative(packages, path)).toEqual([]);
      }
    });
  }

  it('keeps the schema library out of the client and out of what the client imports', () => {
    for (const path of sources(join(packages, 'client', 'src'))) {
      expect(importsOf(path), relative(packages, path)).not.toContain('zod');
      expect(importsOf(path), relative(packages, path)).not.toContain('@exec-server/protocol/schemas');
    }
    const index = importsOf(join(packages, 'protocol', 'src', 'index.ts'));
    expect(index).not.toContain('./schemas.js');
  });

  it('keeps node modules out of the client but for its transports and its disk, and out of the protocol but for its scripts', () => {
    for (const name of ['client', 'protocol']) {
      for (const path of sources(join(packages, name, 'src'))) {
        const place = relative(join(packages, name, 'src'), path);
        if (/^(transport|disk|scripts)\//.test(place)) continue;
        expect(
          importsOf(path).filter((specifier) => specifier.startsWith('node:')),
          place,
        ).toEqual([]);
      }
    }
  });

  it('reaches the local disk of the client by dynamic imports alone', () => {
    const folder = join(packages, 'client', 'src');
    const reached = sources(folder).filter((path) => {
      const isOutside = !relative(folder, path).startsWith('disk/');
      return isOutside && /from\s*'[^']*\/disk\/[^']*'/.test(readFileSync(path, 'utf8'));
    });
    expect(reached).toEqual([]);
    expect(importsOf(join(folder, 'transport', 'nodeHost.ts'))).toContain('../disk/disk.js');
  });

  it('reaches what only Node has through the host alone, so that a browser can have another', () => {
    const folder = join(packages, 'client', 'src');
    const nodeOnly = /\/(nodeHost|nodeSocket|child|serverChild)\.js$/;
    for (const path of sources(folder)) {
      const place = relative(folder, path);
      if (/^transport\/(nodeHost|nodeSocket|child|serverChild)\.ts$/.test(place)) continue;
      expect(
        importsOf(path).filter((specifier) => nodeOnly.test(specifier)),
        place,
      ).toEqual([]);
    }
  });

  it('keeps files that call themselves pure free of the host', () => {
    const pure = sources(packages).filter((path) =>
      /^\/\*\*[\s\S]*?\bPure\.[\s\S]*?\*\//.test(readFileSync(path, 'utf8').slice(0, 600)),
    );
    expect(pure.length).toBeGreaterThan(10);
    for (const path of pure) expect(IMPURE.test(readFileSync(path, 'utf8')), relative(packages, path)).toBe(false);
  });
});
