/** Params → typed params, or an error whose text is the one of the base protocol and whose data names the field. */
import { type ParamsOf, type RequestMethod, WireError } from '@exec-server/protocol';
import { clientNotificationSchemas, requestSchemas } from '@exec-server/protocol/schemas';
import { z } from 'zod';
import { integerName, objectName } from './paramNames.js';

type Issue = z.core.$ZodIssue;

const compiled = new Map<string, z.ZodType>();
for (const [method, { params }] of Object.entries(requestSchemas)) compiled.set(method, z.compile(params));
for (const [method, params] of Object.entries(clientNotificationSchemas)) compiled.set(method, z.compile(params));

/** Throws WireError `invalidParams`. */
export function decodeParams<M extends RequestMethod>(method: M, params: unknown): ParamsOf<M> {
  const schema = compiled.get(method);
  const result = schema?.safeParse(params ?? null);
  // The schema of the method decides the type; the map loses that link.
  if (result?.success === true) return result.data as ParamsOf<M>;
  const issue = result?.error.issues[0];
  throw new WireError('invalidParams', describe(issue, params, method), { field: fieldOf(issue) });
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

function describe(issue: Issue | undefined, params: unknown, method: RequestMethod): string {
  if (issue === undefined) return 'invalid params';
  const found = lookUp(params, issue.path);
  if (!found.present) return `missing field \`${String(issue.path.at(-1))}\``;
  const value = found.value;
  switch (issue.code) {
    case 'invalid_type':
      return `invalid type: ${kindOf(value)}, expected ${expectation(issue.expected, issue.path, method)}`;
    case 'invalid_value':
      return notAVariant(value, issue.values);
    case 'too_small':
      return 'invalid number';
    case 'unrecognized_keys':
      return 'invalid type: map, expected unit';
    case 'custom':
      return typeof value === 'number' ? 'invalid number' : issue.message;
    case 'invalid_union':
      return describe(issue.errors[0]?.[0], value, method);
    default:
      return issue.message;
  }
}

/** An object with one member stands for a variant that carries something, which none does. */
function notAVariant(value: unknown, values: readonly unknown[]): string {
  if (typeof value === 'string') return `unknown variant \`${value}\`, expected ${variants(values)}`;
  if (!isMap(value)) return `invalid type: ${kindOf(value)}, expected string or map`;
  const [[name, content] = [], ...more] = Object.entries(value);
  if (name === undefined || more.length > 0) return 'invalid value: map, expected map with a single key';
  return values.includes(name) ? `invalid type: ${kindOf(content)}, expected unit` : notAVariant(name, values);
}

function expectation(expected: string, path: readonly PropertyKey[], method: RequestMethod): string {
  switch (expected) {
    case 'string':
      return method === 'process/signal' && path[0] === 'signal' ? 'string or map' : 'a string';
    case 'boolean':
      return 'a boolean';
    case 'number':
      return integerName(path);
    case 'array':
      return 'a sequence';
    case 'object':
      return objectName(method, path);
    default:
      return 'a map';
  }
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
