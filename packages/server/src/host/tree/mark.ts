/**
 * The environment mark: names the tasks a child belongs to, and goes on to all it starts, whatever their group or session
 * is. `EXEC_SERVER_MARK=outer:inner`, outermost server first; one mark is `<life>-<count>`. No secret. Pure.
 *
 * The marks before the last are those the server itself was started under, so that an outer server finds what an inner
 * one started. What a request has under this name is no inheritance: it could name another process's tree.
 */

export const MARK_VARIABLE = 'EXEC_SERVER_MARK';

const PREFIX = `${MARK_VARIABLE}=`;
const SEPARATOR = ':';
const SEPARATOR_BYTE = SEPARATOR.charCodeAt(0);
/** Safe inside the list, in a shell word and in a pattern of grep. */
const wellFormed = /^[0-9A-Za-z_-]{1,128}$/;
/** Deeper nesting forgets the outermost, so that the variable stays far below the limit of one argument. */
const MOST_OUTER_MARKS = 64;

/** The marks of one server life. */
export class MarkSource {
  readonly life: string;
  #count = 0;

  /** `life` is random, unlike that of any other server; letters, digits, `_` and `-`. */
  constructor(life: string) {
    if (!wellFormed.test(life))
      throw new Error(`a server life is of letters, digits, _ and -, not ${JSON.stringify(life)}`);
    this.life = life;
  }

  /** Whether a mark was given out. */
  get used(): boolean {
    return this.#count > 0;
  }

  next(): string {
    this.#count += 1;
    return `${this.life}-${this.#count}`;
  }
}

/** The variable's value for a child of `mark`; `outer` is its value in the environment of the server itself. */
export function addMark(outer: string | undefined, mark: string): string {
  const kept = (outer ?? '').split(SEPARATOR).filter((element) => wellFormed.test(element) && element !== mark);
  return [...kept.slice(-MOST_OUTER_MARKS), mark].join(SEPARATOR);
}

/** Whether an environment (`NAME=value`, each ended by NUL) has `mark` in its list. Looks at each byte a bounded number of times. */
export function hasMark(environ: Buffer, mark: string): boolean {
  let at = environ.indexOf(PREFIX, 0, 'latin1');
  while (at >= 0) {
    const value = at + PREFIX.length;
    // Elsewhere it is the tail of another name, or part of a value.
    const isVariable = at === 0 || environ[at - 1] === 0;
    const nul = isVariable ? environ.indexOf(0, value) : value;
    const end = nul < 0 ? environ.length : nul;
    if (isVariable && listHas(environ.subarray(value, end), mark)) return true;
    at = environ.indexOf(PREFIX, end, 'latin1');
  }
  return false;
}

function listHas(list: Buffer, mark: string): boolean {
  let at = list.indexOf(mark, 0, 'latin1');
  while (at >= 0) {
    const end = at + mark.length;
    const begins = at === 0 || list[at - 1] === SEPARATOR_BYTE;
    if (begins && (end === list.length || list[end] === SEPARATOR_BYTE)) return true;
    at = list.indexOf(mark, end, 'latin1');
  }
  return false;
}

/** A basic regular expression, as grep takes it, that finds any mark of a server life in an environment. */
export function lifePattern(life: string): string {
  return `${PREFIX}\\([0-9A-Za-z_-]*${SEPARATOR}\\)*${life}-`;
}
