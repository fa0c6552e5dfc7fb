/** How a page looks: as the plugin has it, without what a signature in a code block says already. */
import { type DeclarationHierarchy, type DeclarationReflection, ReflectionKind, type SomeType } from 'typedoc';
import { type MarkdownPageEvent, MarkdownTheme, MarkdownThemeContext } from 'typedoc-plugin-markdown';

/** The object a call gives, or a promise of it, where its members have docstrings of their own. */
function membersOf(type: SomeType | undefined): DeclarationReflection | undefined {
  const [promised] = type?.type === 'reference' && type.name === 'Promise' ? (type.typeArguments ?? []) : [];
  if (promised !== undefined) return membersOf(promised);
  if (type?.type !== 'reflection') return undefined;
  const { declaration } = type;
  return declaration.children?.some((member) => member.hasComment()) === true ? declaration : undefined;
}

/** What a type extends itself. */
function parentsOf(hierarchy: DeclarationHierarchy): readonly SomeType[] {
  if (hierarchy.isTarget === true) return [];
  return hierarchy.next?.isTarget === true
    ? hierarchy.types
    : hierarchy.next === undefined
      ? []
      : parentsOf(hierarchy.next);
}

/** Whether a type, or what it is made of, is one of ours that cannot be imported; its members are shown. */
const isHidden = (type: SomeType): boolean =>
  type.type === 'reference' &&
  ((type.package?.startsWith('@exec-server/') === true && type.reflection === undefined) ||
    (type.typeArguments ?? []).some(isHidden));

export class ReferenceTheme extends MarkdownTheme {
  override getRenderContext(page: MarkdownPageEvent<DeclarationReflection>): MarkdownThemeContext {
    return new ReferenceContext(this, page, this.application.options);
  }
}

class ReferenceContext extends MarkdownThemeContext {
  constructor(...args: ConstructorParameters<typeof MarkdownThemeContext>) {
    super(...args);
    const plain = this.partials;
    this.partials = {
      ...plain,
      inheritance: () => '',
      hierarchy: (model, { headingLevel }) => {
        const parents = parentsOf(model).filter((type) => !isHidden(type));
        if (parents.length === 0) return '';
        const lines = parents.map((type) => `- ${plain.someType(type)}`);
        return `${'#'.repeat(headingLevel)} Extends\n\n${lines.join('\n')}`;
      },
      signatureReturns: ({ type }, options) => {
        const members = membersOf(type);
        return members === undefined ? '' : `Result:\n\n${plain.typeDeclaration(members, options)}`;
      },
      // What was made a table has no type.
      declarationTitle: (model) =>
        model.kindOf(ReflectionKind.Variable) && model.type === undefined ? '' : plain.declarationTitle(model),
      accessor: ({ getSignature, comment }, options) => {
        if (getSignature === undefined) return '';
        const text = getSignature.comment ?? comment;
        const title = plain.signatureTitle(getSignature, { accessor: 'get' });
        return text === undefined ? title : `${title}\n\n${plain.comment(text, options)}`;
      },
      body: (model, options) => {
        const body = plain.body(model, options);
        return model.isDeclaration() && model.kindOf(ReflectionKind.Module)
          ? `${this.#contents(model)}\n\n${body}`
          : body;
      },
    };
  }

  /** One line a kind. */
  #contents({ name, groups = [] }: DeclarationReflection): string {
    const lines = groups.map(({ title, children }) => {
      const links = children.map((child) => `[${child.name}](${this.urlTo(child)})`);
      return `- **${title}**: ${links.join(', ')}`;
    });
    if (name === 'protocol') lines.push('- **Schemas**: [all](#schemas)');
    return lines.join('\n');
  }
}
