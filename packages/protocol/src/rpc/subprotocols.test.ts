import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { subprotocolsFor, tokenOffered, WEBSOCKET_SUBPROTOCOL } from './subprotocols.js';

describe('a token among the subprotocols', () => {
  it('comes back as it was, whatever it is made of, in characters the header takes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (token) => {
        const offers = subprotocolsFor(token);
        expect(offers[0]).toBe(WEBSOCKET_SUBPROTOCOL);
        for (const offer of offers) expect(offer).toMatch(/^[\w.-]+$/);
        expect(tokenOffered(offers.join(', '))).toBe(token);
      }),
    );
  });

  it('keeps a token that begins with a byte order mark', () => {
    expect(tokenOffered(subprotocolsFor('\uFEFFx').join(','))).toBe('\uFEFFx');
  });

  it('is told from none at all', () => {
    expect(tokenOffered(undefined)).toBeUndefined();
    expect(tokenOffered('')).toBeUndefined();
    expect(tokenOffered('exec-server.v1, chat')).toBeUndefined();
  });

  it.each(['a\r\nb', 'a\n', '\0'])('is empty, as no header could hold it: %j', (token) => {
    expect(tokenOffered(subprotocolsFor(token).join(', '))).toBe('');
  });

  it.each(['bearer.', 'bearer.a', 'bearer.a=b', 'bearer._w', 'bearer.QQ==', 'bearer.ö'])(
    'is empty, which no token is, for what cannot be one: %s',
    (offer) => {
      expect(tokenOffered(`exec-server.v1, ${offer}`)).toBe('');
    },
  );
});
