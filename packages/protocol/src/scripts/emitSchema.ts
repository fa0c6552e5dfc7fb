/**
 * Writes what is derived from the tables: `schema/protocol.json`, `docs/errors.md`, and the generated parts of
 * `docs/protocol.md`. With `--check` it writes nothing and fails when a file is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type ReasonEntry, reasons } from '../errors.js';
import * as limitTable from '../limits.js';
import { clientNotifications, requests, serverNotifications } from '../registry.js';
import { clientNotificationSchemas, requestSchemas, serverNotificationSchemas } from '../schemas.js';

const root = new URL('../../../../', import.meta.url);
const at = (path: string): string => fileURLToPath(new URL(path, root));

function jsonSchema(schema: z.ZodType): unknown {
  // `input`: members that a peer of a later version adds are not forbidden.
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}

function protocolSchema(): string {
  const map = <T>(table: Record<string, T>, shape: (value: T) => unknown): Record<string, unknown> =>
    Object.fromEntries(Object.entries(table).map(([name, value]) => [name, shape(value)]));
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'exec-server protocol',
    requests: map<{ params: z.ZodType; result: z.ZodType }>(requestSchemas, ({ params, result }) => ({
      params: jsonSchema(params),
      result: jsonSchema(result),
    })),
    clientNotifications: map<z.ZodType>(clientNotificationSchemas, jsonSchema),
    serverNotifications: map<z.ZodType>(serverNotificationSchemas, jsonSchema),
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');

function errorTable(): string {
  const rows = Object.entries(reasons).map(([reason, entry]: [string, ReasonEntry]) => {
    const kind = entry.kind === undefined ? '' : `\`${entry.kind}\``;
    return `| \`${reason}\` | ${entry.code} | ${kind} | ${entry.retryable ? 'yes' : 'no'} | ${cell(entry.meaning)} | ${cell(entry.action)} |`;
  });
  return [
    '| reason | code | kind | retry helps | meaning | what to do |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

function methodTable(): string {
  const rows = Object.entries(requests).map(
    ([method, { family, replay, urgent, extension, observers }]) =>
      `| \`${method}\` | request | ${extension ? 'ours' : 'base'} | ${family} | ${replay} | ${yesNo(urgent)} | ${yesNo(observers)} |`,
  );
  const notification = (direction: string, table: Record<string, { extension: boolean }>): string[] =>
    Object.entries(table).map(
      ([method, { extension }]) => `| \`${method}\` | ${direction} | ${extension ? 'ours' : 'base'} | | | | |`,
    );
  return [
    '| method | kind | origin | family | after a cut | passes the queue | observers |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    ...notification('notification to the server', clientNotifications),
    ...notification('notification to the client', serverNotifications),
  ].join('\n');
}

function limitRows(): string {
  const rows = Object.entries(limitTable)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    .map(([name, value]) => `| \`${name}\` | ${value.toLocaleString('en-US')} |`);
  return ['| limit | value |', '| --- | --- |', ...rows].join('\n');
}

/** Replaces what stands between `<!-- generated: name -->` and `<!-- end -->`. */
function fill(document: string, name: string, content: string): string {
  const start = `<!-- generated: ${name} -->`;
  const from = document.indexOf(start);
  const to = document.indexOf('<!-- end -->', from);
  if (from < 0 || to < 0) throw new Error(`the document has no place for ${name}`);
  return `${document.slice(0, from)}${start}\n\n${content}\n\n${document.slice(to)}`;
}

const errorsDocument = await readFile(at('docs/errors.md'), 'utf8');
const protocolDocument = await readFile(at('docs/protocol.md'), 'utf8');
const outputs: Record<string, string> = {
  'packages/protocol/schema/protocol.json': protocolSchema(),
  'docs/errors.md': fill(errorsDocument, 'wire errors', errorTable()),
  'docs/protocol.md': fill(fill(protocolDocument, 'methods', methodTable()), 'limits', limitRows()),
};

const check = process.argv.includes('--check');
let stale = 0;
for (const [path, content] of Object.entries(outputs)) {
  const present = await readFile(at(path), 'utf8').catch(() => '');
  if (present === content) continue;
  stale += 1;
  if (check) process.stderr.write(`${path} is out of date; run the script "schema"\n`);
  else await writeFile(at(path), content);
}
process.exitCode = check && stale > 0 ? 1 : 0;
