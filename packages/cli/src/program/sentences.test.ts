import { describe, expect, it } from 'vitest';
import { unknownCommand, usageSentence } from './sentences.js';

describe('an unknown command', () => {
  const names = ['run', 'shell', 'ps', 'kill', 'attach', 'cp'];
  it.each([
    ['rum', 'run'],
    ['RUN', 'run'],
    ['sp', 'ps'],
    ['atach', 'attach'],
    ['shel', 'shell'],
  ])('%s is taken for %s', (word, meant) => {
    expect(unknownCommand(word, names)).toBe(
      `unknown command '${word}' (did you mean ${meant}?): there are ${names.join(', ')}; without a command it serves`,
    );
  });

  it.each(['frobnicate', 'x', 'zz'])('%s is taken for none', (word) => {
    expect(unknownCommand(word, names)).toMatch(/^unknown command '\w+': there are run,/);
  });
});

describe('a wrong command line', () => {
  it.each([
    ["error: unknown option '--nope'\n", "unknown option '--nope'"],
    [
      "error: unknown option '--lisen'\n(Did you mean --listen?)\n",
      "unknown option '--lisen' (did you mean --listen?)",
    ],
    ["error: 'loud' is invalid. Allowed choices are a, b.\n", "'loud' is invalid: allowed choices are a, b"],
  ])('is one sentence that says where to look: %j', (text, sentence) => {
    expect(usageSentence(text, 'exec-server run')).toBe(
      `exec-server: ${sentence}; \`exec-server run --help\` shows how it is used\n`,
    );
  });
});
