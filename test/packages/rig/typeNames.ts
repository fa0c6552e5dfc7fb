/**
 * Names in place of what they stand for. Of a type that is computed from another one, as the keys of a constant or what a schema
 * gives, the compiler forgets the name where it is used, and lists all of its members.
 */
import {
  type Application,
  type Context,
  Converter,
  type DeclarationReflection,
  type ProjectReflection,
  ReferenceType,
  ReflectionKind,
  type SomeType,
} from 'typedoc';
import ts from 'typescript';

/** Types that name the keys of a constant. */
const keyTypes = {
  clientErrorCodes: 'ClientErrorCode',
  fileErrorCodes: 'FileErrorCode',
  reasons: 'Reason',
  requests: 'RequestMethod',
} as const;

/** Of a tuple the converter forgets that more elements may follow, unless it is given what the author wrote. */
export function keepTuples(app: Application): void {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context: Context, reflection: DeclarationReflection) => {
    const [declaration] = context.getSymbolFromReflection(reflection)?.declarations ?? [];
    if (declaration === undefined || !ts.isPropertySignature(declaration) || declaration.type === undefined) return;
    if (!/\[.*\.\.\./s.test(declaration.type.getText())) return;
    reflection.type = context.converter.convertType(context.withScope(reflection), declaration.type);
  });
}

/** To be called before the constants lose their members. */
export function nameTypes(project: ProjectReflection): void {
  const all = Object.values(project.reflections);
  const declarations = all.filter((one) => one.isDeclaration());
  const names = namesOf(declarations);
  const named = (type: SomeType): SomeType => {
    const target = names.get(signOf(type));
    if (target !== undefined) return ReferenceType.createResolvedReference(target.name, target, project);
    nameWithin(type, named);
    return type;
  };
  for (const one of all) {
    if (!one.isDeclaration() && !one.isSignature() && !one.isParameter()) continue;
    if (one.isParameter() && one.name === '__namedParameters') one.name = 'options';
    one.name = one.name.replace(/^\[(dispose|asyncDispose|asyncIterator)\]$/, '[Symbol.$1]');
    if (one.type === undefined) continue;
    // The order of an alias is that of its author.
    if (one.kindOf(ReflectionKind.TypeAlias)) nameWithin(one.type, named);
    else one.type = inOrder(named(one.type));
  }
}

/** By what stands in their place. */
function namesOf(declarations: readonly DeclarationReflection[]): ReadonlyMap<string, DeclarationReflection> {
  const names = new Map<string, DeclarationReflection>();
  const shared = new Set<string>();
  for (const one of declarations) {
    if (!one.kindOf(ReflectionKind.Interface) || one.parent?.name !== 'protocol') continue;
    const { children = [] } = one;
    // One name alone says little.
    if (children.length < 2) continue;
    const sign = objectSign(children);
    if (names.has(sign)) shared.add(sign);
    names.set(sign, one);
  }
  for (const sign of shared) names.delete(sign);
  for (const [constant, name] of Object.entries(keyTypes)) {
    const { type } = declarations.find((one) => one.name === constant) ?? {};
    const alias = declarations.find((one) => one.name === name && one.kindOf(ReflectionKind.TypeAlias));
    if (type?.type !== 'reflection' || alias === undefined) throw new Error(`${name} does not name ${constant}`);
    names.set(unionSign((type.declaration.children ?? []).map((child) => child.name)), alias);
  }
  return names;
}

const listOf = (words: readonly string[]): string => words.toSorted().join(' ');
const unionSign = (values: readonly string[]): string => `one of ${listOf(values)}`;
const objectSign = (members: readonly DeclarationReflection[]): string =>
  `object of ${listOf(members.map(({ name }) => name))}`;

/** Empty for a type that has a name of its own, or none. */
function signOf(type: SomeType): string {
  if (type.type === 'reflection') return objectSign(type.declaration.children ?? []);
  if (type.type !== 'union') return '';
  const values = type.types.flatMap((one) => (one.type === 'literal' ? [String(one.value)] : []));
  return values.length === type.types.length ? unionSign(values) : '';
}

/** The compiler lists words in the order in which it met them anywhere. */
function inOrder(type: SomeType): SomeType {
  if (type.type !== 'union') return type;
  const isWord = (one: SomeType): boolean => one.type === 'literal' && typeof one.value === 'string';
  const words = type.types.filter(isWord).toSorted((one, other) => (String(one) < String(other) ? -1 : 1));
  type.types = type.types.map((one) => (isWord(one) ? (words.shift() ?? one) : one));
  return type;
}

function nameWithin(type: SomeType, named: (type: SomeType) => SomeType): void {
  switch (type.type) {
    case 'array':
      type.elementType = named(type.elementType);
      return;
    case 'typeOperator':
      type.target = named(type.target);
      return;
    case 'union':
    case 'intersection':
      type.types = type.types.map(named);
      return;
    case 'reference':
      // Of buffers it names the default.
      if (type.name === 'Uint8Array') delete type.typeArguments;
      if (type.typeArguments !== undefined) type.typeArguments = type.typeArguments.map(named);
      return;
    case 'predicate':
      if (type.targetType !== undefined) type.targetType = named(type.targetType);
      return;
    default:
  }
}
