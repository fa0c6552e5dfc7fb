import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { clientNotifications, ErrorCode, limits, reasons, requests, serverNotifications } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';

describe('what is frozen on the wire', () => {
  it('has these codes', () => {
    expect(ErrorCode).toEqual({
      transportClosed: -32000,
      notFound: -32004,
      attachedElsewhere: -32010,
      invalidRequest: -32600,
      methodNotFound: -32601,
      invalidParams: -32602,
      internal: -32603,
    });
  });

  it('has these methods and notifications', () => {
    expect(Object.keys(requests)).toEqual([
      'initialize',
      'environment/info',
      'environment/status',
      'process/start',
      'process/read',
      'process/write',
      'process/signal',
      'process/terminate',
      'process/resize',
      'process/list',
      'process/release',
      'process/follow',
      'process/flush',
      'fs/readFile',
      'fs/writeFile',
      'fs/open',
      'fs/readBlock',
      'fs/writeBlock',
      'fs/close',
      'fs/createDirectory',
      'fs/remove',
      'fs/copy',
      'fs/move',
      'fs/getMetadata',
      'fs/canonicalize',
      'fs/readDirectory',
      'fs/walk',
      'fs/watchMissing',
      'fs/watch',
      'fs/unwatch',
      'fs/pack',
      'fs/unpack',
      'http/request',
      'ping',
      'session/close',
    ]);
    expect(Object.keys(clientNotifications)).toEqual(['initialized', 'process/ack']);
    expect(Object.keys(serverNotifications)).toEqual([
      'process/output',
      'process/exited',
      'process/closed',
      'process/gap',
      'fs/missingChanged',
      'fs/changed',
      'http/request/bodyDelta',
    ]);
  });

  it('gives each reason one of the codes, and the codes of the reference where it has one', () => {
    const codes: ReadonlySet<number> = new Set(Object.values(ErrorCode));
    for (const [reason, { code }] of Object.entries(reasons)) expect(codes.has(code), reason).toBe(true);
    expect(reasons.unknownSession.code).toBe(-32600);
    expect(reasons.expiredSession.code).toBe(-32600);
    expect(reasons.attachedElsewhere.code).toBe(-32010);
    expect(reasons.takenOver.code).toBe(-32010);
    expect(reasons.programNotFound).toMatchObject({ code: -32603, kind: 'spawnNotFound' });
    expect(reasons.sandboxUnavailable).toMatchObject({ code: -32603, kind: 'sandboxUnavailable' });
  });

  it('keeps the limits of the reference where clients rely on them', () => {
    expect(limits.MAX_MESSAGE_BYTES).toBe(64 * 1024 * 1024);
    expect(limits.MAX_JSON_VALUES).toBe(262_144);
    expect(limits.MAX_JSON_DEPTH).toBe(127);
    expect(limits.SESSION_LEASE_MS).toBe(80_000);
    expect(limits.RECOVERY_MS).toBeLessThan(limits.SESSION_LEASE_MS);
    // A reply of MAX_READ_BYTES in base64 must fit a reply, and what is undelivered must fit the window.
    expect((limits.MAX_READ_BYTES * 4) / 3).toBeLessThan(limits.MAX_REPLY_BYTES);
    expect(limits.PAUSE_PROCESS_BYTES).toBeLessThan(limits.RETAINED_BYTES_PER_PROCESS);
  });

  it('has committed the emitted schema and the tables in the documents', () => {
    const script = fileURLToPath(new URL('../../packages/protocol/dist/scripts/emitSchema.js', import.meta.url));
    expect(() => execFileSync(process.execPath, [script, '--check'], { stdio: 'pipe' })).not.toThrow();
  });
});
