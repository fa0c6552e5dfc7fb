/** Parts of the reference that read better as one table than as declaration after declaration. */
import { limits } from '@exec-server/protocol';
import { Comment, type DeclarationReflection, type ProjectReflection, ReflectionKind } from 'typedoc';

/** Constants that generated tables of the documents have whole: their types would be pages long. */
const inDocuments = [
  'reasons',
  'requests',
  'clientNotifications',
  'serverNotifications',
  'requestSchemas',
  'clientNotificationSchemas',
  'serverNotificationSchemas',
];
/** Constants of codes, each with its text. */
const ofCodes = ['clientErrorCodes', 'fileErrorCodes'];

/** Leaves of each such constant its docstring, and of one of codes a table. */
export function collapseTables(project: ProjectReflection): void {
  for (const constant of project.getReflectionsByKind(ReflectionKind.Variable)) {
    const type = constant.isDeclaration() ? constant.type : undefined;
    if (!constant.isDeclaration() || type?.type !== 'reflection') continue;
    if (ofCodes.includes(constant.name)) {
      const rows = (type.declaration.children ?? []).map(({ name, type: text }) => [
        code(name),
        text?.type === 'literal' ? String(text.value) : '',
      ]);
      addTable(constant, ['Code', 'Meaning'], rows);
    } else if (!inDocuments.includes(constant.name)) {
      continue;
    }
    project.removeTypeReflections(type);
    delete constant.type;
  }
}

/** Makes one table of the limits, and takes the module of the schemas away; gives its section. To be called once all is checked. */
export function takeSections(project: ProjectReflection): string {
  const protocol = childOf(project, 'protocol');
  const namespace = childOf(protocol, 'limits');
  const rows = (namespace.children ?? []).flatMap((limit) => {
    const value = Object.entries(limits).find(([name]) => name === limit.name)?.[1];
    return typeof value === 'number' ? [[code(limit.name), value.toLocaleString('en'), summaryOf(limit)]] : [];
  });
  addTable(namespace, ['Limit', 'Value', 'Meaning'], rows);
  takeOut(project, protocol, namespace);
  // A namespace has a page of its own.
  namespace.kind = ReflectionKind.Variable;

  const schemas = childOf(project, 'schemas');
  const section = [
    '## Schemas',
    summaryOf(schemas),
    table(
      ['Export', 'Meaning'],
      (schemas.children ?? []).map((schema) => [code(schema.name), summaryOf(schema)]),
    ),
  ];
  project.removeReflection(schemas);
  return section.join('\n\n');
}

/** Leaves the namespace empty. A function that the module exports as well gets its place there. */
function takeOut(project: ProjectReflection, module: DeclarationReflection, namespace: DeclarationReflection): void {
  const groups = module.groups ?? [];
  for (const child of namespace.children?.slice() ?? []) {
    const twin = module.children?.find(({ name }) => name === child.name);
    project.removeReflection(twin ?? child);
    if (twin === undefined) continue;
    child.parent = module;
    module.addChild(child);
    for (const group of groups) {
      group.children = group.children.filter((other) => other !== twin);
      if (group.title === 'Functions') group.children.push(child);
    }
  }
  namespace.children = [];
  namespace.groups = [];
  module.groups = groups.filter(({ children }) => children.length > 0);
}

function childOf(parent: ProjectReflection | DeclarationReflection, name: string): DeclarationReflection {
  const child = parent.children?.find((candidate) => candidate.name === name);
  if (child === undefined) throw new Error(`${parent.name} has no ${name}`);
  return child;
}

const code = (text: string): string => `\`${text}\``;

function summaryOf({ comment }: DeclarationReflection): string {
  return (comment?.summary ?? [])
    .map(({ text }) => text)
    .join('')
    .trim();
}

function addTable(reflection: DeclarationReflection, heads: readonly string[], rows: readonly string[][]): void {
  reflection.comment ??= new Comment();
  reflection.comment.summary.push({ kind: 'text', text: `\n\n${table(heads, rows)}` });
}

function table(heads: readonly string[], rows: readonly string[][]): string {
  const cell = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}
