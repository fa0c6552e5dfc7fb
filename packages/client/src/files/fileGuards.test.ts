import { describe, expect, it } from 'vitest';
import {
  blockReply,
  changedNotice,
  closeReply,
  metadataReply,
  openReply,
  readDirectoryReply,
  readFileReply,
  walkReply,
  writtenReply,
} from './fileGuards.js';

const flags = { isDirectory: false, isFile: true, isSymlink: false };
const metadata = { ...flags, size: 3, createdAtMs: 0, modifiedAtMs: 1.5 };

describe('the guards of file answers', () => {
  it('take what the base protocol answers, without the additions', () => {
    expect(readFileReply({ dataBase64: 'YQ==' })).toEqual({ bytes: Uint8Array.of(97) });
    expect(openReply({ handleId: 'h' })).toEqual({});
    expect(blockReply({ chunk: '', eof: true })).toEqual({ bytes: new Uint8Array(0), eof: true });
    expect(closeReply({})).toEqual({});
    expect(metadataReply(metadata)).toEqual(metadata);
    expect(readDirectoryReply({ entries: [{ fileName: 'a', isDirectory: false, isFile: true }] })).toEqual({
      entries: [{ fileName: 'a', isDirectory: false, isFile: true }],
    });
    expect(walkReply({ entries: [], errors: [], truncated: false })).toEqual({
      entries: [],
      errors: [],
      truncated: false,
    });
  });

  it('take the additions, and leave out what a later version says', () => {
    expect(readFileReply({ dataBase64: '', size: 5, eof: false, identity: 'i', later: 1 })).toEqual({
      bytes: new Uint8Array(0),
      size: 5,
      eof: false,
      identity: 'i',
    });
    expect(openReply({ handleId: 'h', stagedBytes: 0, committed: { inPlace: 'mount' } })).toEqual({
      stagedBytes: 0,
      committed: { inPlace: 'mount' },
    });
    expect(writtenReply({ inPlace: 'laterReason' })).toEqual({});
    expect(metadataReply({ ...metadata, kind: 'laterKind', mode: 0o644 })).toEqual({ ...metadata, mode: 0o644 });
    expect(closeReply({ entries: 2, bytes: 9 })).toEqual({ entries: 2, bytes: 9 });
    expect(changedNotice({ watchId: 'w', changes: [], overflow: true, ended: 'x' })).toEqual({
      watchId: 'w',
      changes: [],
      overflow: true,
      ended: 'x',
    });
  });

  it.each([
    [readFileReply, { dataBase64: 'a' }],
    [readFileReply, {}],
    [openReply, {}],
    [openReply, { handleId: 'h', committed: 1 }],
    [blockReply, { chunk: '' }],
    [blockReply, { chunk: '!', eof: true }],
    [closeReply, null],
    [writtenReply, 'x'],
    [metadataReply, { ...metadata, size: -1 }],
    [metadataReply, { ...flags }],
    [readDirectoryReply, { entries: [{ fileName: 'a' }] }],
    [readDirectoryReply, {}],
    [walkReply, { entries: [{ path: '/a', kind: 'laterKind' }], errors: [], truncated: false }],
    [walkReply, { entries: [], errors: [{}], truncated: false }],
    [changedNotice, { watchId: 'w' }],
    [changedNotice, { watchId: 'w', changes: [{ kind: 'moved', path: '/a', isDirectory: false }] }],
  ])('refuse what is not the answer, case %#', (guard, value) => {
    expect(guard(value)).toBeUndefined();
  });
});
