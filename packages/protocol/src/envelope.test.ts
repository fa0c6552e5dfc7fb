import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEnvelope, encodeRequestId } from './envelope.js';

const status = '"method":"environment/status"';

function detailOf(text: string): string | undefined {
  const envelope = decodeEnvelope(text);
  return envelope.kind === 'malformed' ? envelope.detail : undefined;
}

/** How the id of a request comes back in the answer. */
function echo(idText: string): string {
  const envelope = decodeEnvelope(`{"id":${idText},${status}}`);
  if (envelope.kind !== 'request') throw new Error(`${idText} gives ${JSON.stringify(envelope)}`);
  return encodeRequestId(envelope.id);
}

const BAD_ID = 'data did not match any variant of untagged enum RequestId';
/** JSON values that survive `JSON.stringify`: no -0. */
const json = fc.jsonValue({ stringUnit: 'grapheme' }).map((value): unknown => JSON.parse(JSON.stringify(value)));
const text = fc.string({ unit: 'grapheme' });

describe('kinds', () => {
  it('decides the kind by the members', () => {
    expect(decodeEnvelope('{"id":1,"method":"a","params":{"x":[1]}}')).toStrictEqual({
      kind: 'request',
      id: 1,
      method: 'a',
      params: { x: [1] },
    });
    expect(decodeEnvelope('{"method":"a"}')).toStrictEqual({ kind: 'notification', method: 'a', params: undefined });
    expect(decodeEnvelope('{"id":"r","result":null}')).toStrictEqual({ kind: 'result', id: 'r', result: null });
    expect(decodeEnvelope('{"error":{"code":-32600,"message":"no","data":{"kind":"k"}},"id":-1}')).toStrictEqual({
      kind: 'error',
      id: -1,
      error: { code: -32600, message: 'no', data: { kind: 'k' } },
    });
  });

  it('ignores jsonrpc and members it does not know', () => {
    expect(decodeEnvelope(`{"jsonrpc":"1.0","id":1,${status},"unknownField":[1]}`).kind).toBe('request');
  });

  it('takes an error answer without an id, as servers send for what they could not read', () => {
    expect(decodeEnvelope('{"id":null,"error":{"code":1,"message":""}}')).toMatchObject({ kind: 'error', id: null });
    expect(detailOf('{"id":null,"result":1}')).toBe(BAD_ID);
  });

  it('takes trace as an object or null only', () => {
    expect(decodeEnvelope(`{"id":1,${status},"trace":null}`).kind).toBe('request');
    expect(decodeEnvelope(`{"id":1,${status},"trace":{"traceparent":"00"}}`).kind).toBe('request');
    expect(detailOf(`{"id":1,${status},"trace":[]}`)).toBe('invalid type: sequence, expected struct W3cTraceContext');
  });

  it.each([
    ['{"result":1}', 'missing field `id`'],
    ['{"error":{"code":1,"message":""}}', 'missing field `id`'],
    ['{"id":1,"error":null}', 'invalid type: null, expected struct JSONRPCErrorError'],
    ['{"id":1,"error":{"message":""}}', 'missing field `code`'],
    ['{"id":1,"error":{"code":"1","message":""}}', 'invalid type: string "1", expected i64'],
    ['{"id":1,"error":{"code":1}}', 'missing field `message`'],
    ['{"method":true}', 'invalid type: boolean `true`, expected a string'],
  ])('refuses %s', (message, detail) => {
    expect(detailOf(message)).toBe(detail);
  });

  it('decodes any request, however it is spaced', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), text, json, fc.nat(3), (id, method, params, indent) => {
        const message = JSON.stringify({ params, id, method }, null, indent);
        expect(decodeEnvelope(message)).toStrictEqual({ kind: 'request', id: id === 0 ? 0 : id, method, params });
      }),
    );
  });

  it('decodes any result with a result of any form', () => {
    fc.assert(
      fc.property(text, json, (id, result) => {
        expect(decodeEnvelope(JSON.stringify({ id, result }))).toStrictEqual({ kind: 'result', id, result });
      }),
    );
  });

  it('gives an own member named __proto__ no power', () => {
    expect(detailOf('{"__proto__":{"id":1,"method":"a"}}')).toBe('missing field `error`');
    const envelope = decodeEnvelope('{"id":1,"method":"a","params":{"__proto__":{"polluted":true}}}');
    expect(envelope).toHaveProperty('params');
    expect(Object.getPrototypeOf(envelope.kind === 'request' ? envelope.params : null)).toBe(Object.prototype);
    expect(Object.prototype).not.toHaveProperty('polluted');
    expect(detailOf('{"method":"a","__proto__":1,"__proto__":2}')).toContain('duplicate JSON object key `__proto__`');
  });
});

describe('ids', () => {
  it.each(['"abc"', '""', '"7"', '-5', '0', '9007199254740991', '9007199254740993', '9223372036854775807'])(
    'echoes %s',
    (id) => {
      expect(echo(id)).toBe(id);
    },
  );

  it.each(['null', '1.5', '1.0', '1e3', '1E3', 'true', '{}', '[1]', '9223372036854775808', '-9223372036854775809'])(
    'refuses %s',
    (id) => {
      expect(detailOf(`{"id":${id},${status}}`)).toBe(BAD_ID);
      expect(detailOf(`{"result":0,"id" :\t${id} }`)).toBe(BAD_ID);
    },
  );

  it('writes minus zero as zero', () => {
    expect(echo('-0')).toBe('0');
  });

  it('reads the literal of the outermost id only, plain or escaped', () => {
    expect(decodeEnvelope('{"params":{"id":1.0},"method":"a","id":3}')).toMatchObject({ id: 3 });
    expect(detailOf(String.raw`{"\u0069\u0064":1.0,"method":"a"}`)).toBe(BAD_ID);
    expect(decodeEnvelope(String.raw`{"i\u0064":1,"method":"a"}`)).toMatchObject({ id: 1 });
  });

  it('keeps integers beyond 2^53 apart from each other and from strings', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (id) => {
        expect(echo(String(id))).toBe(String(id));
        expect(echo(JSON.stringify(String(id)))).toBe(JSON.stringify(String(id)));
      }),
    );
  });

  it('echoes strings that look like its own tokens', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('\u0000int:', '\u0000str:', '7', '-', 'x')), (parts) => {
        const id = JSON.stringify(parts.join(''));
        expect(echo(id)).toBe(id);
      }),
    );
  });
});

describe('malformed texts', () => {
  it.each([
    ['{', 'EOF while parsing an object at line 1 column 1'],
    ['', 'EOF while parsing a value at line 1 column 0'],
    ['null', 'expected a JSON-RPC object'],
    ['5', 'expected a JSON-RPC object'],
    ['"x"', 'expected a JSON-RPC object'],
    ['{}', 'missing field `error`'],
    ['[]', 'expected a JSON-RPC object'],
    [`[{"id":1,${status}}]`, 'expected a JSON-RPC object'],
    [`{"id":1,"id":2,${status}}`, 'duplicate JSON object key `id` at line 1 column 12'],
    ['{"id":1,"method":3}', 'invalid type: number, expected a string'],
    ['{"id":1}', 'missing field `error`'],
    [`{"id":1,${status}} {"id":2,${status}}`, 'trailing characters at line 1 column 40'],
    [`{"id":1,${status},"trace":5}`, 'invalid type: number, expected struct W3cTraceContext'],
    ['{nope', 'key must be a string at line 1 column 2'],
    ['\u0001\u0002', 'expected value at line 1 column 1'],
    ['{"a":[1,]}', 'trailing comma at line 1 column 9'],
    ['{"a":[1 2]}', 'expected `,` or `]` at line 1 column 9'],
    ['{\n"é" 1}', 'expected `:` at line 2 column 6'],
    ['{"a":tru', 'EOF while parsing a value at line 1 column 8'],
    ['{"a":nul}', 'expected ident at line 1 column 9'],
    ['{"a":01}', 'invalid number at line 1 column 7'],
    ['{"a":1.', 'EOF while parsing a value at line 1 column 7'],
    ['{"a":"b', 'EOF while parsing a string at line 1 column 7'],
    ['{"a":"\t"}', 'control character (\\u0000-\\u001F) found while parsing a string at line 1 column 7'],
    [String.raw`{"a":"\x"}`, 'invalid escape at line 1 column 8'],
    ['\uFEFF{}', 'expected value at line 1 column 1'],
  ])('says what is wrong with %j', (message, detail) => {
    expect(detailOf(message)).toBe(detail);
  });

  it('finds a duplicate key at any depth, however it is spelled', () => {
    expect(detailOf(String.raw`{"method":"a","params":[{"k":1,"\u006b":2}]}`)).toBe(
      'duplicate JSON object key `k` at line 1 column 39',
    );
    fc.assert(
      fc.property(json, text, json, (before, key, value) => {
        const member = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
        const params = `[${JSON.stringify(before)},{${member},"other key":0,${member}}]`;
        expect(detailOf(`{"method":"a","params":${params}}`)).toContain('duplicate JSON object key');
      }),
    );
  });

  it('refuses an escaped surrogate without its other half', () => {
    const params = (escaped: string): string => `{"method":"a","params":"${escaped}"}`;
    expect(decodeEnvelope(params(String.raw`\ud83d\ude00 \\ud83d \ud7ff`))).toMatchObject({
      params: '😀 \\ud83d \ud7ff',
    });
    for (const lone of [String.raw`\ud83d`, String.raw`\uDE00`, String.raw`\ud83d\n`, String.raw`\ud83d\ud83d`]) {
      expect(detailOf(params(lone))).toContain('surrogate in hex escape');
    }
  });

  it('answers a huge key with a short text', () => {
    const key = JSON.stringify('😀'.repeat(100_000));
    expect(detailOf(`{${key}:1,${key}:2}`)?.length).toBeLessThan(300);
  });

  it('never throws, and refuses exactly what is no JSON object with members of a message', () => {
    const message = fc.record({ id: fc.oneof(fc.integer(), text), method: text, params: json });
    const characters = fc.constantFrom(...'{}[]",:\\ \n0-.eEu1dtrue\0é\ud83d'.split(''));
    fc.assert(
      fc.property(message, fc.nat(), fc.nat(2), characters, (value, seed, cut, insert) => {
        const whole = JSON.stringify(value);
        const at = seed % (whole.length + 1);
        const mutated = whole.slice(0, at) + insert + whole.slice(at + cut);
        const detail = detailOf(mutated);
        try {
          JSON.parse(mutated);
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
          expect(detail).toMatch(/ at line \d+ column \d+$/);
          return;
        }
        expect(detail).not.toBe('invalid JSON');
      }),
      { numRuns: 2000 },
    );
  });
});

describe('limits', () => {
  const withPad = (zeros: number): string => `{"id":9,${status},"params":null,"pad":[${'0,'.repeat(zeros)}0]}`;

  it('takes 262144 values and no more', () => {
    expect(decodeEnvelope(withPad(262_138)).kind).toBe('request');
    expect(detailOf(withPad(262_139))).toBe(
      'JSON-RPC message exceeds the limit of 262144 JSON values at line 1 column 524337',
    );
    const containers = (count: number): string => `{"method":"a","params":[${'[ ],'.repeat(count)}{}]}`;
    expect(decodeEnvelope(containers(262_140)).kind).toBe('notification');
    expect(detailOf(containers(262_141))).toContain('exceeds the limit');
  });

  it('takes 127 levels and no more', () => {
    const nested = (levels: number): string => `{"method":"a","params":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    expect(decodeEnvelope(nested(126)).kind).toBe('notification');
    expect(detailOf(nested(127))).toBe('recursion limit exceeded at line 1 column 150');
    expect(detailOf('['.repeat(127) + ']'.repeat(127))).toBe('expected a JSON-RPC object');
  });

  it('answers nesting of 100,000 levels at once', () => {
    const start = performance.now();
    expect(detailOf('['.repeat(100_000))).toBe('recursion limit exceeded at line 1 column 128');
    expect(detailOf('{"a":'.repeat(100_000))).toBe('recursion limit exceeded at line 1 column 636');
    expect(performance.now() - start).toBeLessThan(500);
  });

  it.each([
    ['escaped quotes', String.raw`{"method":"a","params":"${'\\"'.repeat(1 << 20)}"}`],
    ['quotes', '"'.repeat(1 << 21)],
    ['space before every end', `{"method":"a","params":[${`[0${' '.repeat(1000)}],`.repeat(2000)}0]}`],
    ['digits', `{"id":${'9'.repeat(1 << 21)},"method":"a"}`],
    ['backslashes outside of strings', '\\'.repeat(1 << 21)],
  ])('takes linear time for %s', (_, message) => {
    const start = performance.now();
    decodeEnvelope(message);
    // A quadratic step would take minutes.
    expect(performance.now() - start).toBeLessThan(5000);
  });
});
