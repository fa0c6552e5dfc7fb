import { describe, expect, it } from 'vitest';
import { type LandingWish, landingOf } from './landing.js';

const wish = (
  kind: LandingWish['source']['kind'],
  path: string,
  found: LandingWish['destination']['found'],
  rest: Partial<Pick<LandingWish, 'includeParent' | 'overwrite'>> = {},
): LandingWish => ({
  source: { kind, path: '/from/name' },
  destination: { path, found },
  includeParent: false,
  overwrite: true,
  ...rest,
});

describe('a file', () => {
  it('takes a path that is free or that a file has', () => {
    expect(landingOf(wish('file', '/to/x', 'missing'))).toEqual({ ok: true, path: '/to/x' });
    expect(landingOf(wish('file', '/to/x', 'other'))).toEqual({ ok: true, path: '/to/x' });
  });

  it('lands inside of a folder under its own name', () => {
    expect(landingOf(wish('file', '/to', 'directory'))).toEqual({ ok: true, path: '/to/name' });
    expect(landingOf(wish('file', '/', 'directory'))).toEqual({ ok: true, path: '/name' });
  });

  it('has the folder made that a slash at the end means', () => {
    expect(landingOf(wish('file', '/to/', 'missing'))).toEqual({ ok: true, path: '/to/name', makeFolder: '/to' });
    expect(landingOf(wish('file', '/to/', 'other'))).toEqual({ ok: false, code: 'ENOTDIR', path: '/to' });
  });

  it('is refused where a file is and nothing may be overwritten', () => {
    const refusal = { ok: false, code: 'EEXIST', path: '/to/x' };
    expect(landingOf(wish('file', '/to/x', 'other', { overwrite: false }))).toEqual(refusal);
  });
});

describe('a folder', () => {
  it('becomes a path that is free, with a slash at its end as well', () => {
    for (const path of ['/to/x', '/to/x/']) {
      expect(landingOf(wish('directory', path, 'missing'))).toEqual({ ok: true, path: '/to/x' });
      expect(landingOf(wish('directory', path, 'missing', { includeParent: true }))).toEqual({
        ok: true,
        path: '/to/x',
      });
    }
  });

  it('merges into an existing folder, or lands inside of it where its own name is wanted', () => {
    expect(landingOf(wish('directory', '/to', 'directory'))).toEqual({ ok: true, path: '/to' });
    const inside = landingOf(wish('directory', '/to', 'directory', { includeParent: true }));
    expect(inside).toEqual({ ok: true, path: '/to/name' });
  });

  it('never takes the place of a file', () => {
    expect(landingOf(wish('directory', '/to', 'other'))).toEqual({ ok: false, code: 'ENOTDIR', path: '/to' });
  });
});
