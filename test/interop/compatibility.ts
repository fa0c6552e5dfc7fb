/** The table of docs/compatibility.md that says what was run with which version of the reference: made from the results of a run. Pure. */

/** One test of a run: its file and titles, joined by ` > `. */
export interface TestOutcome {
  readonly name: string;
  readonly state: 'passed' | 'failed' | 'skipped' | 'pending';
}

interface Row {
  readonly what: string;
  readonly tests: RegExp;
}

interface Part {
  readonly pair: (version: string) => string;
  readonly rows: readonly Row[];
}

const onOurs = (names: string): RegExp => new RegExp(`agent\\.test\\.ts > the agent on ours.* > (${names})`);

const parts: readonly Part[] = [
  {
    pair: (version) => `agent ${version} on our server`,
    rows: [
      {
        what: 'commands on pipes and terminals: output, exit code, input, interrupts',
        tests: onOurs('runs|types|interrupts|kills'),
      },
      { what: 'patches, project files, skills, images', tests: onOurs('applies|reads|looks|is told') },
      { what: 'megabytes of output, also through many cuts', tests: onOurs('takes several|misses nothing') },
      { what: 'a session resumed after a cut; background children live on', tests: onOurs('resumes|leaves') },
      { what: 'lagging behind a flood, 64 MiB behind a cut, a long cut', tests: /badDays\.test\.ts > / },
    ],
  },
  {
    pair: (version) => `our client on the reference ${version}`,
    rows: [
      { what: 'processes, over WebSocket and stdio', tests: /client\.test\.ts > .* > processes > / },
      { what: 'runs and streams', tests: /client\.test\.ts > .* > callers > / },
      { what: 'files', tests: /client\.test\.ts > .* > files > / },
      { what: 'http from the server', tests: /client\.test\.ts > .* > http > / },
      { what: 'cuts: resume, gaps, each write and start once', tests: /recovery\.test\.ts > / },
      { what: 'what it lacks is `NOT_SUPPORTED`, and nothing is sent', tests: /lacking\.test\.ts > / },
    ],
  },
  {
    pair: (version) => `both servers, reference ${version}`,
    rows: [
      { what: 'the same answers: paths, handles, processes (generated)', tests: /differential.* > on generated / },
      { what: 'the same answers: bounds, links, environment, http (scripted)', tests: /differential.* > on scripted / },
    ],
  },
];

/** Undefined where a row has no test that passed, or any has one that failed: then the run says nothing about the table. */
export function compatibilityTable(outcomes: readonly TestOutcome[], version: string): string | undefined {
  const lines = ['| with | what | tests |', '| --- | --- | --- |'];
  for (const { pair, rows } of parts) {
    for (const { what, tests } of rows) {
      const states = outcomes.filter(({ name }) => tests.test(name)).map(({ state }) => state);
      const passed = states.filter((state) => state === 'passed').length;
      if (passed === 0 || states.includes('failed')) return undefined;
      lines.push(`| ${pair(version)} | ${what} | ${passed} |`);
    }
  }
  return lines.join('\n');
}

const BEGINS = '<!-- generated: compatibility -->';
const ENDS = '<!-- end -->';

/** The document with this table between its marks. Throws where it has no marks. */
export function withTable(document: string, table: string): string {
  const begin = document.indexOf(BEGINS);
  const end = document.indexOf(ENDS, begin);
  if (begin < 0 || end < 0) throw new Error(`the document has no ${BEGINS} … ${ENDS}`);
  return `${document.slice(0, begin + BEGINS.length)}\n\n${table}\n\n${document.slice(end)}`;
}
