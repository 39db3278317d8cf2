import type { AnyNode, ArrowFunctionExpression, FunctionDeclaration, FunctionExpression, Identifier } from 'acorn'
import { boundNames } from '../syntax/bound-names.ts'
import { eachPart } from '../syntax/each-part.ts'

type AnyFunction = FunctionDeclaration | FunctionExpression | ArrowFunctionExpression
type Scope = { readonly names: ReadonlySet<string>; readonly outer: Scope | undefined }

/** A name and what it is a part of. */
export type FreeName = { readonly identifier: Identifier; readonly parent: AnyNode }

/** Identifiers that no declaration of the script binds: what it takes from outside. In the order of the script. */
export function freeNames(program: AnyNode): readonly FreeName[] {
  const found: FreeName[] = []
  visitParts(program, undefined, found)
  return found
}

function visit(node: AnyNode, parent: AnyNode, scope: Scope | undefined, found: FreeName[]): void {
  if (node.type === 'Identifier') {
    if (!isBound(node.name, scope)) found.push({ identifier: node, parent })
  } else if (isFunction(node)) visitFunction(node, scope, found)
  else visitParts(node, scope, found)
}

function visitParts(node: AnyNode, outer: Scope | undefined, found: FreeName[]): void {
  const inner = scopeOf(declaredIn(node), outer)
  // The names of a declaration itself are visited as well: they are bound where they stand.
  eachPart(node, (part) => {
    const isOutside = node.type === 'SwitchStatement' && part === node.discriminant
    if (part.type !== 'Identifier' || !isLabel(node, part)) visit(part, node, isOutside ? outer : inner, found)
  })
}

/** Its name, its parameters, and its body are scopes one inside the other: defaults do not see what the body declares. */
function visitFunction(node: AnyFunction, outer: Scope | undefined, found: FreeName[]): void {
  const own = node.type === 'FunctionExpression' && node.id ? [node.id.name] : []
  const given = node.params.flatMap(boundNames)
  if (node.type !== 'ArrowFunctionExpression') given.push('arguments')
  const scope = scopeOf(given, scopeOf(own, outer))
  for (const parameter of node.params) visit(parameter, node, scope, found)
  visit(node.body, node, scopeOf(hoistedNames(node.body), scope), found)
}

const scopeOf = (names: readonly string[], outer: Scope | undefined): Scope | undefined =>
  names.length === 0 ? outer : { names: new Set(names), outer }

function isBound(name: string, scope: Scope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.outer) if (at.names.has(name)) return true
  return false
}

/** Names that are no references: of members, of properties, of labels. */
function isLabel(node: AnyNode, part: AnyNode): boolean {
  switch (node.type) {
    case 'MemberExpression':
      return !node.computed && part === node.property
    case 'Property':
      return !node.computed && part === node.key && part !== node.value
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return !node.computed && part === node.key
    case 'LabeledStatement':
    case 'BreakStatement':
    case 'ContinueStatement':
      return part === node.label
    default:
      return false
  }
}

/** The names of the scope that a node opens. */
function declaredIn(node: AnyNode): readonly string[] {
  switch (node.type) {
    case 'Program':
    case 'BlockStatement':
    case 'StaticBlock':
      return node.body.flatMap(lexicalNames)
    case 'SwitchStatement':
      return node.cases.flatMap(({ consequent }) => consequent.flatMap(lexicalNames))
    case 'ForStatement':
      return lexicalNames(node.init)
    case 'ForInStatement':
    case 'ForOfStatement':
      return lexicalNames(node.left)
    case 'CatchClause':
      return node.param ? boundNames(node.param) : []
    case 'ClassExpression':
      return node.id ? [node.id.name] : []
    default:
      return []
  }
}

function lexicalNames(node: AnyNode | null | undefined): readonly string[] {
  switch (node?.type) {
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return node.id ? [node.id.name] : []
    case 'VariableDeclaration':
      return node.kind === 'var' ? [] : node.declarations.flatMap(({ id }) => boundNames(id))
    default:
      return []
  }
}

/** Names that `var` declares in a function, however deep, but not in functions further in. */
function hoistedNames(body: AnyNode): readonly string[] {
  const names: string[] = []
  const collect = (node: AnyNode): void => {
    if (isFunction(node)) return
    if (node.type === 'VariableDeclaration' && node.kind === 'var')
      names.push(...node.declarations.flatMap(({ id }) => boundNames(id)))
    eachPart(node, collect)
  }
  collect(body)
  return names
}

const isFunction = (node: AnyNode): node is AnyFunction =>
  node.type === 'FunctionDeclaration' || node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression'
