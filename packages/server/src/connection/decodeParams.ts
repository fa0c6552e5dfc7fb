/** Params → typed params, or an error whose text is the one of the base protocol and whose data names the field. */
import { type ParamsOf, type RequestMethod, WireError } from '@exec-server/protocol';
import { clientNotificationSchemas, requestSchemas } from '@exec-server/protocol/schemas';
import { z } from 'zod';

type Issue = z.core.$ZodIssue;

const compiled = new Map<string, z.ZodType>();
for (const [method, { params }] of Object.entries(requestSchemas)) compiled.set(method, z.compile(params));
for (const [method, params] of Object.entries(clientNotificationSchemas)) compiled.set(method, z.compile(params));

/** Names of the parameter objects, as the texts of the base protocol have them. */
const STRUCT_NAMES: Partial<Record<RequestMethod, string>> = {
  initialize: 'InitializeParams',
  'process/start': 'ExecParams',
  'process/read': 'ReadParams',
  'process/write': 'WriteParams',
  'process/signal': 'SignalParams',
  'process/terminate': 'TerminateParams',
};

/** Throws WireError `invalidParams`. */
export function decodeParams<M extends RequestMethod>(method: M, params: unknown): ParamsOf<M> {
  const schema = compiled.get(method);
  const result = schema?.safeParse(params ?? null);
  // The schema of the method decides the type; the map loses that link.
  if (result?.success === true) return result.data as ParamsOf<M>;
  const issue = result?.error.issues[0];
  throw new WireError('invalidParams', describe(issue, params, STRUCT_NAMES[method]), { field: fieldOf(issue) });
}

/** Undefined when the params do not fit. */
export function decodeAck(params: unknown): { processId: string; seq: number } | undefined {
  const result = clientNotificationSchemas['process/ack'].safeParse(params);
  return result.success ? result.data : undefined;
}

function fieldOf(issue: Issue | undefined): string {
  let field = '';
  for (const key of issue?.path ?? []) {
    if (typeof key === 'number') field += `[${key}]`;
    else field += field === '' ? String(key) : `.${String(key)}`;
  }
  return field === '' ? 'params' : field;
}

function describe(issue: Issue | undefined, params: unknown, struct: string | undefined): string {
  if (issue === undefined) return 'invalid params';
  const found = lookUp(params, issue.path);
  if (!found.present) return `missing field \`${String(issue.path.at(-1))}\``;
  const value = found.value;
  switch (issue.code) {
    case 'invalid_type':
      return `invalid type: ${kindOf(value)}, expected ${expectation(issue.expected, issue.path, struct)}`;
    case 'invalid_value':
      return typeof value === 'string'
        ? `unknown variant \`${value}\`, expected ${variants(issue.values)}`
        : `invalid type: ${kindOf(value)}, expected string or map`;
    case 'too_small':
      return 'invalid number';
    case 'unrecognized_keys':
      return 'invalid type: map, expected unit';
    case 'custom':
      return typeof value === 'number' ? `invalid type: floating point \`${value}\`, expected u64` : issue.message;
    case 'invalid_union':
      return describe(issue.errors[0]?.[0], value, struct);
    default:
      return issue.message;
  }
}

function expectation(expected: string, path: readonly PropertyKey[], struct: string | undefined): string {
  switch (expected) {
    case 'string':
      return struct === 'SignalParams' && path[0] === 'signal' ? 'string or map' : 'a string';
    case 'boolean':
      return 'a boolean';
    case 'number':
      return 'u64';
    case 'array':
      return 'a sequence';
    case 'object':
      if (path.length > 0) return 'a map';
      return struct === undefined ? 'unit' : `struct ${struct}`;
    default:
      return 'a map';
  }
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'sequence';
  if (typeof value === 'object') return 'map';
  if (typeof value === 'string')
    return `string ${JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value)}`;
  return typeof value === 'boolean' ? `boolean \`${value}\`` : 'number';
}

function variants(values: readonly unknown[]): string {
  const quoted = values.map((value) => `\`${String(value)}\``);
  return quoted.length > 2 ? `one of ${quoted.join(', ')}` : quoted.join(' or ');
}

function lookUp(root: unknown, path: readonly PropertyKey[]): { present: boolean; value: unknown } {
  let value: unknown = root;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key))
      return { present: false, value: undefined };
    // An own property of a parsed JSON value.
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return { present: true, value };
}
