import fc from 'fast-check';
import { expect, test } from 'vitest';
import { INSPECT_BYTES, LineScanner, type MessageScanner, type Scanned } from './scanner.js';
import { WebSocketScanner } from './wsFrames.js';

const HEAD = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';

interface FrameParts {
  readonly opcode: number;
  readonly payload: Uint8Array;
  readonly final?: boolean;
  readonly compressed?: boolean;
  readonly mask?: number;
}

function frame({ opcode, payload, final = true, compressed = false, mask }: FrameParts): Buffer {
  const { length } = payload;
  const first = (final ? 0x80 : 0) | (compressed ? 0x40 : 0) | opcode;
  const masked = mask === undefined ? 0 : 0x80;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  if (length < 126) {
    head[1] = masked | length;
  } else if (length < 65_536) {
    head[1] = masked | 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = masked | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  if (mask === undefined) return Buffer.concat([head, payload]);
  const key = Buffer.alloc(4);
  key.writeUInt32BE(mask);
  return Buffer.concat([head, key, payload.map((byte, index) => byte ^ (key[index % 4] ?? 0))]);
}

const text = (value: string, parts: Partial<FrameParts> = {}): Buffer =>
  frame({ opcode: 1, payload: Buffer.from(value), ...parts });

/** Feeds the input in pieces of the given sizes, the last one repeated. */
function scan(scanner: MessageScanner, input: Buffer, sizes: readonly number[] = [input.length]): Scanned[] {
  const out: Scanned[] = [];
  for (let at = 0, turn = 0; at < input.length; turn += 1) {
    const size = sizes[Math.min(turn, sizes.length - 1)] ?? input.length;
    out.push(...scanner.push(input.subarray(at, at + size)));
    at += size;
  }
  out.push(...scanner.end());
  return out;
}

const joined = (runs: readonly Scanned[]): Buffer => Buffer.concat(runs.map((run) => run.bytes));
const texts = (runs: readonly Scanned[]): (string | undefined)[] =>
  runs.filter((run) => run.endsMessage).map((run) => run.text);
const inspecting = (): WebSocketScanner => Object.assign(new WebSocketScanner(), { inspect: true });

const messages = fc.array(
  fc.record({
    fragments: fc.array(fc.string({ unit: 'grapheme', maxLength: 200 }), { minLength: 1, maxLength: 3 }),
    mask: fc.option(fc.nat(0xffffffff), { nil: undefined }),
    ping: fc.boolean(),
  }),
  { maxLength: 6 },
);

test('finds every message at any split, changes no byte, unmasks for the text only', () => {
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }), (list, sizes) => {
      const wire: Buffer[] = [Buffer.from(HEAD)];
      for (const { fragments, mask, ping } of list) {
        const masked = mask === undefined ? {} : { mask };
        for (const [index, fragment] of fragments.entries()) {
          const final = index === fragments.length - 1;
          wire.push(text(fragment, { opcode: index === 0 ? 1 : 0, final, ...masked }));
          if (ping) wire.push(frame({ opcode: 9, payload: Buffer.from('ping'), ...masked }));
        }
      }
      const input = Buffer.concat(wire);
      const runs = scan(inspecting(), input, sizes);
      expect(joined(runs)).toEqual(input);
      expect(texts(runs)).toEqual(list.map(({ fragments }) => fragments.join('')));
      const blind = scan(new WebSocketScanner(), input, sizes);
      expect(joined(blind)).toEqual(input);
      expect(texts(blind)).toEqual(list.map(() => undefined));
    }),
    { numRuns: 150 },
  );
});

test('a message that is judged comes whole, in one run', () => {
  const message = text('judged');
  const runs = scan(inspecting(), Buffer.concat([Buffer.from(HEAD), message]), [HEAD.length, 3, 1]);
  expect(runs.at(-1)).toEqual({ bytes: new Uint8Array(message), endsMessage: true, text: 'judged' });
});

test('long, binary and compressed messages pass without being held', () => {
  const scanner = inspecting();
  scanner.push(Buffer.from(HEAD));
  const long = text('x'.repeat(INSPECT_BYTES + 1));
  expect(joined(scanner.push(long.subarray(0, 1000))).length).toBe(1000);
  expect(texts(scanner.push(long.subarray(1000)))).toEqual([undefined]);
  const rest = Buffer.concat([
    frame({ opcode: 2, payload: Buffer.from('binary') }),
    text('squeezed', { compressed: true }),
    text('plain'),
  ]);
  const runs = scan(scanner, rest);
  expect(texts(runs)).toEqual([undefined, undefined, 'plain']);
  expect(joined(runs)).toEqual(rest);
});

test('what is held when the input ends is handed out', () => {
  const input = Buffer.concat([Buffer.from(HEAD), text('never finished').subarray(0, 9)]);
  expect(joined(scan(inspecting(), input))).toEqual(input);
});

test('an answer that is no upgrade, and frames of no known kind, pass as bytes', () => {
  const refusal = Buffer.from('HTTP/1.1 401 Unauthorized\r\n\r\n\u0081\u0003abc');
  expect(scan(inspecting(), refusal, [7]).some((run) => run.endsMessage)).toBe(false);
  const garbage = Buffer.concat([Buffer.from(HEAD), Buffer.from('GET /metrics HTTP/1.1\r\n\r\n')]);
  const runs = scan(inspecting(), garbage, [11]);
  expect(joined(runs)).toEqual(garbage);
  expect(runs.some((run) => run.endsMessage)).toBe(false);
});

test('lines: finds every one at any split and changes no byte', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((value) => !value.includes('\n'));
  fc.assert(
    fc.property(
      fc.array(line),
      line,
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
      (list, tail, sizes) => {
        const input = Buffer.from(list.map((value) => `${value}\n`).join('') + tail);
        const runs = scan(Object.assign(new LineScanner(), { inspect: true }), input, sizes);
        expect(joined(runs)).toEqual(input);
        expect(texts(runs)).toEqual(list);
      },
    ),
    { numRuns: 150 },
  );
});

test('lines: a long one passes without being held', () => {
  const scanner = Object.assign(new LineScanner(), { inspect: true });
  const input = Buffer.from(`${'x'.repeat(INSPECT_BYTES)}y\nshort\n`);
  const runs = scan(scanner, input, [1000]);
  expect(joined(runs).equals(input)).toBe(true);
  expect(texts(runs)).toEqual([undefined, 'short']);
});
