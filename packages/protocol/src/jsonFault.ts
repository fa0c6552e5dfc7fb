/** What is wrong with a text, in the words of the reference's parser. Pure. */
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  LF,
  MINUS,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  isDigit,
  skipSpace,
  shorten,
} from './jsonText.js';
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from './limits.js';

/** The fault of a text that is known to have one. */
export function findFault(text: string): string {
  return new FaultFinder(text).find() ?? 'invalid JSON';
}

const TOO_MANY_VALUES = `JSON-RPC message exceeds the limit of ${MAX_JSON_VALUES} JSON values`;
const CONTROL_CHARACTER = 'control character (\\u0000-\\u001F) found while parsing a string';
const EOF_IN_VALUE = 'EOF while parsing a value';

const word = /true|false|null/y;
const startOfWord = /t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?/y;
/** A number, and in the group what cannot end one. */
const numberLiteral = /-?(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)?([.eE][+-]?)?/y;
/** All but controls, the quote and the backslash. */
const plainCharacters = /[ !#-[\]-\uffff]*/y;
/** What stands behind a backslash; surrogates only in pairs. */
const escapeSequence =
  /["\\/bfnrt]|u(?![dD][89a-fA-F])[\da-fA-F]{4}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/y;
const surrogate = /u[dD][89a-fA-F][\da-fA-F]{2}/y;

/**
 * Reads a text in the order of the reference's parser and names the first thing wrong with it, with its line and column.
 * Slow beside `JSON.parse`; runs only when a message is refused or suspect. Steps return a fault or undefined.
 */
export class FaultFinder {
  readonly #text: string;
  #at = 0;
  #values = 0;
  /** Open containers from the outside in: the keys so far of an object, undefined for an array. */
  readonly #open: (Set<string> | undefined)[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  find(): string | undefined {
    do {
      const fault = this.#readValue() ?? this.#readSeparator();
      if (fault !== undefined) return fault;
    } while (this.#open.length > 0);
    return this.#at < this.#text.length ? this.#fault('trailing characters') : undefined;
  }

  /** Reads a scalar or an empty container, after as many openings of others as stand before it. */
  #readValue(): string | undefined {
    for (;;) {
      const char = this.#peek();
      if (++this.#values > MAX_JSON_VALUES) return this.#fault(TOO_MANY_VALUES, 0);
      if (char !== OPEN_ARRAY && char !== OPEN_OBJECT) return this.#readScalar(char);
      if (this.#open.length === MAX_JSON_DEPTH) return this.#fault('recursion limit exceeded');
      this.#at++;
      const isObject = char === OPEN_OBJECT;
      const first = this.#peek();
      if (first === (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        this.#at++;
        return undefined;
      }
      this.#open.push(isObject ? new Set() : undefined);
      if (Number.isNaN(first)) return this.#fault(`EOF while parsing ${isObject ? 'an object' : 'a list'}`);
      const fault = isObject ? this.#readKey() : undefined;
      if (fault !== undefined) return fault;
    }
  }

  /** Reads what stands behind a value: ends of containers, then a comma and the next key, or the end of the outermost value. */
  #readSeparator(): string | undefined {
    for (;;) {
      const char = this.#peek();
      if (this.#open.length === 0) return undefined;
      const isObject = this.#open.at(-1) !== undefined;
      const close = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
      if (char === close) {
        this.#at++;
        this.#open.pop();
        continue;
      }
      if (Number.isNaN(char)) return this.#fault(`EOF while parsing ${isObject ? 'an object' : 'a list'}`);
      if (char !== COMMA) return this.#fault(`expected \`,\` or \`${String.fromCharCode(close)}\``);
      this.#at++;
      const next = this.#peek();
      if (next === close) return this.#fault('trailing comma');
      if (Number.isNaN(next)) return this.#fault(EOF_IN_VALUE);
      return isObject ? this.#readKey() : undefined;
    }
  }

  #readKey(): string | undefined {
    if (this.#peek() !== QUOTE) return this.#fault('key must be a string');
    const from = this.#at;
    const fault = this.#readString();
    if (fault !== undefined) return fault;
    const key = String(JSON.parse(this.#text.slice(from, this.#at)));
    const keys = this.#open.at(-1);
    const next = this.#peek();
    if (keys?.has(key) === true) return this.#fault(`duplicate JSON object key \`${shorten(key)}\``, 0);
    keys?.add(key);
    if (next !== COLON) return this.#fault(Number.isNaN(next) ? 'EOF while parsing an object' : 'expected `:`');
    this.#at++;
    return undefined;
  }

  #readScalar(char: number): string | undefined {
    if (Number.isNaN(char)) return this.#fault(EOF_IN_VALUE);
    if (char === QUOTE) return this.#readString();
    if (char === MINUS || isDigit(char)) return this.#readNumber();
    if (this.#match(word) !== undefined) return undefined;
    if (this.#match(startOfWord) === undefined) return this.#fault('expected value');
    return this.#fault(this.#isEnd() ? EOF_IN_VALUE : 'expected ident');
  }

  #readNumber(): string | undefined {
    const [literal, unfinished] = this.#match(numberLiteral) ?? [];
    if (literal !== '-' && unfinished === undefined && !isDigit(this.#code())) return undefined;
    return this.#fault(this.#isEnd() ? EOF_IN_VALUE : 'invalid number');
  }

  #readString(): string | undefined {
    this.#at++;
    for (;;) {
      this.#match(plainCharacters);
      const char = this.#code();
      if (this.#isEnd()) return this.#fault('EOF while parsing a string');
      if (char !== QUOTE && char !== BACKSLASH) return this.#fault(CONTROL_CHARACTER);
      this.#at++;
      if (char === QUOTE) return undefined;
      if (this.#match(escapeSequence) !== undefined) continue;
      if (this.#match(surrogate) !== undefined) return this.#fault('lone leading surrogate in hex escape', 0);
      return this.#fault(this.#isEnd() ? 'EOF while parsing a string' : 'invalid escape');
    }
  }

  /** Moves behind what a sticky pattern matches here. */
  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? undefined;
    this.#at += found?.[0].length ?? 0;
    return found;
  }

  /** The next character that is not space; NaN at the end. */
  #peek(): number {
    this.#at = skipSpace(this.#text, this.#at);
    return this.#code();
  }

  /** NaN at the end, which compares unequal to everything. */
  #code(): number {
    return this.#text.charCodeAt(this.#at);
  }

  #isEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** `text` with the position in UTF-8 bytes, `next` of them further, as far as there are any. */
  #fault(text: string, next: 0 | 1 = 1): string {
    let line = 1;
    let column = this.#isEnd() ? 0 : next;
    for (let at = this.#at - 1; at >= 0; at--) {
      const char = this.#text.charCodeAt(at);
      if (char === LF) line++;
      else if (line === 1) column += utf8Length(char);
    }
    return `${text} at line ${line} column ${column}`;
  }
}

/** Bytes that a code unit adds to its text in UTF-8; the two halves of a pair make four. */
function utf8Length(char: number): number {
  if (char < 0x80) return 1;
  return char < 0x800 || (char >= 0xd800 && char <= 0xdfff) ? 2 : 3;
}
