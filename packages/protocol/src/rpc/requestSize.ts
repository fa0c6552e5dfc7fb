/** Whether the other side takes a request of this size: one that is too large costs the connection there. Pure. */
import { MAX_JSON_VALUES, MAX_MESSAGE_BYTES } from '../limits.js';
import { RequestTooLargeError } from './peerErrors.js';

/** Room for the members around the params. */
const ENVELOPE_BYTES = 1024;
const ENVELOPE_VALUES = 4;
/** A character of a JSON text takes at most so many bytes in UTF-8. */
const BYTES_PER_CHAR = 3;

/** `encoded`: the JSON text of `params`. Undefined when it may be sent. */
export function refuseTooLarge(
  method: string,
  params: object,
  encoded: string,
  maxBytes = MAX_MESSAGE_BYTES,
): RequestTooLargeError | undefined {
  const most = maxBytes - ENVELOPE_BYTES;
  if (encoded.length * BYTES_PER_CHAR > most && utf8Length(encoded) > most) {
    return new RequestTooLargeError(method, { bytes: maxBytes });
  }
  // No value takes less than a character and what divides it from the next.
  const values = MAX_JSON_VALUES - ENVELOPE_VALUES;
  if (encoded.length > 2 * values && countValues(params, values) > values) {
    return new RequestTooLargeError(method, { values: MAX_JSON_VALUES });
  }
  return undefined;
}

function utf8Length(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}

/** Values in a JSON value, itself included; no more than one beyond `most` are counted. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  let count = 1;
  for (const inner of Object.values(value)) {
    count += countValues(inner, most - count);
    if (count > most) return count;
  }
  return count;
}
