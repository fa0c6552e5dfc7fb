/** What is wrong with a command line, as one sentence of ours: what, what was perhaps meant, and where to look. Pure. */

/** How many letters may be wrong in a word for it to be taken for another. */
const MOST_WRONG = 2;

/** The name a word was perhaps meant to be. */
function similar(word: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, wrong: distance(word.toLowerCase(), name) }))
    .filter(({ name, wrong }) => wrong <= Math.min(MOST_WRONG, name.length - 1))
    .sort((a, b) => a.wrong - b.wrong);
  return best?.name;
}

/** Letters to insert, remove, replace, or swap with their neighbour. */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + (isSame ? 0 : 1),
          isSwap ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    before = last;
    last = row;
  }
  return last[to.length] ?? 0;
}

/** `names`: of the commands there are. */
export function unknownCommand(word: string, names: readonly string[]): string {
  const meant = similar(word, names);
  const guess = meant === undefined ? '' : ` (did you mean ${meant}?)`;
  return `unknown command '${word}'${guess}: there are ${names.join(', ')}; without a command it serves`;
}

/** `text`: of the library that reads command lines. `name`: the command with what it belongs to, `exec-server run`. */
export function usageSentence(text: string, name: string): string {
  const [first = '', hint = ''] = text.trim().split('\n');
  const what = first
    .replace(/^error: /, '')
    .replace(/\.$/, '')
    .replaceAll(/\. ([A-Z])/g, (_, letter: string) => `: ${letter.toLowerCase()}`);
  const meant = /^\(Did you mean (.+)\?\)$/.exec(hint)?.[1];
  const guess = meant === undefined ? '' : ` (did you mean ${meant}?)`;
  return `exec-server: ${what}${guess}; \`${name} --help\` shows how it is used\n`;
}
