import { expect, it } from 'vitest';
import { compatibilityTable, withTable } from './compatibility.js';

const outcome = (name: string, state: 'passed' | 'failed' | 'skipped' = 'passed') => ({ name, state });

const whole = [
  ...['runs x', 'applies y', 'takes several z', 'resumes q'].map((name) =>
    outcome(`agent.test.ts > the agent on ours > ${name}`),
  ),
  outcome('agent.test.ts > the agent on ours alone > misses nothing of several'),
  outcome('agent.test.ts > the agent on reference > runs x'),
  outcome('badDays.test.ts > a'),
  ...['processes', 'callers', 'files', 'http'].map((part) => outcome(`client.test.ts > our client > ${part} > a`)),
  outcome('client.test.ts > our client > files > b', 'skipped'),
  outcome('recovery.test.ts > a'),
  outcome('lacking.test.ts > a'),
  outcome('differential.test.ts > x > on generated a'),
  outcome('differential.test.ts > x > on scripted a'),
];

it('counts what passed, by row', () => {
  const table = compatibilityTable(whole, '1.2.3');
  expect(table).toContain('| agent 1.2.3 on our server | megabytes of output, also through many cuts | 2 |');
  expect(table).toContain('| our client on the reference 1.2.3 | files | 1 |');
  expect(table?.split('\n')).toHaveLength(15);
});

it('is not made of a run in which a row is missing or failed', () => {
  expect(compatibilityTable(whole.slice(1), '1')).toBeUndefined();
  expect(compatibilityTable([...whole, outcome('lacking.test.ts > b', 'failed')], '1')).toBeUndefined();
});

it('takes its place between the marks', () => {
  const document = 'a\n<!-- generated: compatibility -->\nold\n<!-- end -->\nb';
  const replaced = 'a\n<!-- generated: compatibility -->\n\nnew\n\n<!-- end -->\nb';
  expect(withTable(document, 'new')).toBe(replaced);
  expect(withTable(replaced, 'new')).toBe(replaced);
  expect(() => withTable('none', 'new')).toThrow('the document has no');
});
