/** The API reference: the docstrings of the public entry points, as Markdown by TypeDoc, and what is missing in them. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Application, LogLevel, Logger, type ProjectReflection, type TypeDocOptions } from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';
import ts from 'typescript';
import { collapseTables, takeSections } from './referenceSections.js';
import { ReferenceTheme } from './referenceTheme.js';
import { keepTuples, nameTypes } from './typeNames.js';
import { type PackageName, root, scoped } from './workspace.js';

/** Public entry points, by the name their module has in the reference. */
const entries = {
  client: 'packages/client/src/index.ts',
  server: 'packages/server/src/index.ts',
  protocol: 'packages/protocol/src/index.ts',
  schemas: 'packages/protocol/src/schemas.ts',
  testing: 'packages/testing/src/index.ts',
  cli: 'packages/cli/src/index.ts',
} as const;

/** Packages with a page of their own; the schemas are a section of the page of the protocol. */
export const pageNames: readonly PackageName[] = ['client', 'server', 'protocol', 'testing', 'cli'];

const packageNames = pageNames.map(scoped);

export interface Reference {
  /** The Markdown of each page. */
  readonly pages: ReadonlyMap<PackageName, string>;
  /** What TypeDoc finds wrong with docstrings, each a line. */
  readonly faults: readonly string[];
}

const options = {
  entryPoints: Object.values(entries).map((path) => join(root, path)),
  plugin: ['typedoc-plugin-markdown'],
  readme: 'none',
  logLevel: 'Warn',
  // The compiler has had its say before; what its options are here does not matter to it.
  skipErrorChecking: true,
  disableSources: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
  sort: ['source-order'],
  packagesRequiringDocumentation: packageNames,
  requiredToBeDocumented: [
    'Module',
    'Namespace',
    'Variable',
    'Function',
    'Class',
    'Interface',
    'TypeAlias',
    'Constructor',
    'Property',
    'Method',
    'Accessor',
  ],
  validation: { notDocumented: true, notExported: true, invalidLink: true },
  theme: 'reference',
  router: 'module',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  pageTitleTemplates: { module: '@exec-server/{name}' },
  // Code hosts make anchors of headings in ways of their own; the prefix keeps ours apart from theirs.
  useHTMLAnchors: true,
  anchorPrefix: 'api-',
  useCodeBlocks: true,
  expandParameters: true,
  expandObjects: true,
  parametersFormat: 'none',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  tableColumnSettings: {
    hideDefaults: true,
    hideInherited: true,
    hideOverrides: true,
    hideModifiers: true,
    leftAlignHeaders: true,
  },
} satisfies Partial<TypeDocOptions & PluginOptions>;

/** Pages and faults of the sources as they are. */
export async function makeReference(): Promise<Reference> {
  const app = await Application.bootstrapWithPlugins(options, []);
  const log = new Faults();
  app.logger = log;
  app.renderer.defineTheme('reference', ReferenceTheme);
  app.options.setCompilerOptions(app.options.getValue('entryPoints'), compilerOptions(), undefined);
  keepTuples(app);
  const project = await app.convert();
  if (project === undefined) throw new Error(`the sources cannot be converted: ${[...log.lines].join('\n')}`);
  nameModules(project);
  nameTypes(project);
  collapseTables(project);
  // Whether a type can be imported is asked of one package at a time. What makes ids differ from strings nobody names.
  for (const name of packageNames) {
    project.packageName = name;
    app.options.setValue('intentionallyNotExported', name === '@exec-server/protocol' ? ['Branded'] : []);
    app.validate(project);
  }
  delete project.packageName;
  const schemas = takeSections(project);
  const folder = await mkdtemp(join(tmpdir(), 'reference-'));
  try {
    app.options.setValue('outputs', [{ name: 'markdown', path: folder }]);
    await app.generateOutputs(project);
    const pages = new Map<PackageName, string>();
    for (const name of pageNames) {
      const text = await readFile(join(folder, `${name}.md`), 'utf8');
      pages.set(name, tidied(name === 'protocol' ? `${text}\n\n${schemas}` : text));
    }
    return { pages: withNeededAnchors(pages), faults: [...log.lines].filter((line) => !isOfType(line)) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** One program over all sources, so that a symbol is the same one in every package. */
function compilerOptions(): ts.CompilerOptions {
  // The reader does not know what it reads.
  const { config } = ts.readConfigFile(join(root, 'tsconfig.base.json'), (path) => ts.sys.readFile(path)) as {
    readonly config: { readonly compilerOptions: object };
  };
  return {
    ...ts.convertCompilerOptionsFromJson(config.compilerOptions, root).options,
    composite: false,
    declaration: false,
    declarationMap: false,
    sourceMap: false,
    noEmit: true,
    paths: {
      '@exec-server/protocol/schemas': [join(root, entries.schemas)],
      '@exec-server/*': [join(root, 'packages/*/src/index.ts')],
    },
  };
}

/** TypeDoc names modules by their paths. */
function nameModules(project: ProjectReflection): void {
  const key = (name: string): string => name.toLowerCase();
  for (const module of project.children ?? []) {
    for (const { children } of module.groups ?? []) {
      children.sort((one, other) => (key(one.name) < key(other.name) ? -1 : 1));
    }
    const path = project.getSymbolIdFromReflection(module)?.fileName ?? '';
    const [name] = Object.entries(entries).find(([, entry]) => path.endsWith(entry)) ?? [];
    if (name === undefined) throw new Error(`no entry point is at ${path}`);
    module.name = name;
  }
}

/**
 * Members of the protocol's types that are inferred from schemas, which the tables of its document have, and of tagged results,
 * of which the docstring of the type speaks as a whole.
 */
const isOfType = (fault: string): boolean =>
  /\(Property\), defined in @exec-server\/protocol\/src\/methods\//.test(fault) ||
  /^\w+\.\w+\.__type\..*, defined in /.test(fault);

const tidied = (text: string): string => `${text.trim().replaceAll(/\n{3,}/g, '\n\n')}\n`;

/** An anchor nothing points to is noise. */
function withNeededAnchors(pages: ReadonlyMap<PackageName, string>): ReadonlyMap<PackageName, string> {
  const links = [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/\]\((?<file>[a-z]*)(?:\.md)?(?<anchor>#[^)]+)\)/g)].map(
      ({ groups }) => `${groups?.['file'] || page}${groups?.['anchor']}`,
    ),
  );
  const needed = new Set(links);
  return new Map(
    [...pages].map(([page, text]) => [
      page,
      text.replaceAll(/<a id="([^"]+)"><\/a>\s*/g, (anchor, id: string) => (needed.has(`${page}#${id}`) ? anchor : '')),
    ]),
  );
}

/** Collects warnings and errors. */
class Faults extends Logger {
  readonly lines = new Set<string>();

  override log(message: string, level: LogLevel): void {
    if (level >= LogLevel.Warn) this.lines.add(message);
  }
}
