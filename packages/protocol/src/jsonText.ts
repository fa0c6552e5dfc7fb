/** Characters of JSON that the scans look for. Pure. */

const TAB = 0x09;
export const LF = 0x0a;
const CR = 0x0d;
export const SPACE = 0x20;
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const POINT = 0x2e;
const ZERO = 0x30;
export const SEVEN = 0x37;
const NINE = 0x39;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_ARRAY = 0x5d;
export const LETTER_D = 0x64;
export const LETTER_E = 0x65;
export const LETTER_I = 0x69;
export const LETTER_U = 0x75;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

export function isSpace(char: number): boolean {
  return char === SPACE || char === LF || char === CR || char === TAB;
}

export function isDigit(char: number): boolean {
  return char >= ZERO && char <= NINE;
}

export function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** Text of the peer inside an error, so that the answer to a huge message is small; never ends in half a character. */
export function shorten(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
