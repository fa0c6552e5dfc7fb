/** After a run of everything: the table of docs/compatibility.md says what was run, or the run fails. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Reporter, TestModule } from 'vitest/node';
import { REFERENCE_VERSION } from '../../../bench/src/reference.mjs';
import { compatibilityTable, withTable } from '../compatibility.js';
import { required } from './required.js';

const document = fileURLToPath(new URL('../../../docs/compatibility.md', import.meta.url));

/** Whether the table is to be written, and not compared. */
const updates = process.env['EXEC_SERVER_INTEROP'] === 'update';

export class CompatibilityReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const outcomes = modules.flatMap((module) =>
      Array.from(module.children.allTests(), (test) => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        state: test.result().state,
      })),
    );
    const say = (line: string): void => void process.stderr.write(`${line}\n`);
    const table = compatibilityTable(outcomes, REFERENCE_VERSION);
    if (table === undefined) {
      say('the table of docs/compatibility.md was not compared: not everything was run, or something failed');
      if (required) process.exitCode = 1;
      return;
    }
    const before = readFileSync(document, 'utf8');
    const after = withTable(before, table);
    if (after === before) return;
    if (updates) {
      writeFileSync(document, after);
      say('the table of docs/compatibility.md was written');
      return;
    }
    say(`the table of docs/compatibility.md differs from this run; pnpm test:interop:update writes it:\n${table}`);
    process.exitCode = 1;
  }
}
