import { describe, expect, it } from 'vitest';
import { admit, isHostAllowed, isLoopback, type RequestHead } from './admission.js';

const rules = { allowedOrigins: ['https://app.example'], allowedHosts: ['exec.example', 'exec.example:8443'] };
const head = (changes: Partial<RequestHead> = {}): RequestHead => ({
  method: 'GET',
  target: '/',
  origin: undefined,
  host: '127.0.0.1:7000',
  upgrade: true,
  ...changes,
});
const status = (changes: Partial<RequestHead>): number | 'upgrade' => {
  const admission = admit(head(changes), rules);
  return admission.kind === 'upgrade' ? 'upgrade' : admission.status;
};

describe('admission', () => {
  it('upgrades at the root, whatever the query', () => {
    expect(status({})).toBe('upgrade');
    expect(status({ target: '/?x=1' })).toBe('upgrade');
  });

  it('knows no other path for an upgrade', () => {
    expect(status({ target: '/ws' })).toBe(404);
    expect(status({ target: '//' })).toBe(404);
  });

  it('refuses every origin that is not listed, the opaque one included', () => {
    expect(status({ origin: 'https://evil.example' })).toBe(403);
    expect(status({ origin: 'null' })).toBe(403);
    expect(status({ origin: '' })).toBe(403);
    expect(status({ origin: 'https://app.example' })).toBe('upgrade');
  });

  it('refuses an unlisted origin on every path', () => {
    expect(status({ origin: 'https://evil.example', target: '/readyz', upgrade: false })).toBe(403);
  });

  it('refuses host names that are not listed, and a missing host', () => {
    expect(status({ host: 'rebound.example:7000' })).toBe(403);
    expect(status({ host: undefined })).toBe(403);
    expect(admit(head({ host: 'rebound.example' }), rules)).toMatchObject({
      body: expect.stringContaining('--allow-host'),
    });
  });

  it('answers the health check to GET and HEAD', () => {
    expect(status({ target: '/readyz', upgrade: false })).toBe(200);
    expect(status({ target: '/readyz', upgrade: false, method: 'HEAD' })).toBe(200);
    expect(status({ target: '/readyz', upgrade: false, method: 'POST' })).toBe(405);
  });

  it('tells a plain request that an upgrade is wanted', () => {
    expect(status({ upgrade: false })).toBe(400);
    expect(status({ upgrade: false, method: 'POST' })).toBe(405);
  });
});

describe('a host name', () => {
  it.each(['localhost', 'LOCALHOST:80', '127.0.0.1', '192.0.2.7:7000', '[::1]', '[::1]:7000'])(
    '%s is allowed',
    (host) => {
      expect(isHostAllowed(host, [])).toBe(true);
    },
  );

  it.each(['localhost.evil.example', '127.0.0.1.evil.example', 'evil.example:7000', ''])('%j is refused', (host) => {
    expect(isHostAllowed(host, [])).toBe(false);
  });

  it('is allowed by name, with or without a port, in any case', () => {
    expect(isHostAllowed('Exec.Example:9999', ['exec.example'])).toBe(true);
    expect(isHostAllowed('exec.example:8443', ['EXEC.example:8443'])).toBe(true);
    expect(isHostAllowed('exec.example:9999', ['exec.example:8443'])).toBe(false);
  });
});

describe('an address', () => {
  it.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])('%s is loopback', (address) => {
    expect(isLoopback(address)).toBe(true);
  });

  it.each(['0.0.0.0', '::', '192.0.2.1', '127.evil.example', '127.0.0.1.evil.example', ''])(
    '%j is not loopback',
    (address) => {
      expect(isLoopback(address)).toBe(false);
    },
  );
});
