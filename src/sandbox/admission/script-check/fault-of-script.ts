import { type AnyNode, parse, type Program, type Statement } from 'acorn'
import { plainScript } from '../../wire/plain-script.ts'
import { eachPart } from '../syntax/each-part.ts'
import { isDefinition } from '../syntax/is-definition.ts'
import { type FreeName, freeNames } from './free-names.ts'

const ENTRY = 'instantiate'

/** What jco's runtime takes from the engine. */
const GLOBALS = new Set(
  (
    'Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Error Float32Array Float64Array Infinity ' +
    'Int8Array Int16Array Int32Array JSON Map Math NaN Number Object Promise RangeError Set String Symbol TextDecoder ' +
    'TextEncoder TypeError URL Uint8Array Uint8ClampedArray Uint16Array Uint32Array WeakMap WeakRef WebAssembly ' +
    'clearInterval clearTimeout fetch isNaN parseInt queueMicrotask setInterval setTimeout undefined'
  ).split(' '),
)
/** Names that jco's runtime uses in places that are never reached and declares nowhere; the plain script asks for one. */
const STRAY = new Set(['componentIdx', 'rep', 'release', 'vals'])
/** Globals of which jco's runtime takes these members and no others. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  globalThis: ['WebAssembly'],
  console: ['debug', 'error', 'log', 'warn'],
}
/** The one thing that jco's runtime asks the process, to be told that it is not there. */
const DEBUG_QUESTION = 'globalThis?.process?.env?.JCO_DEBUG'

/** Properties that lead from any value to what makes code of text, or past a member that was taken away. */
const REFUSED_NAMES = new Set(
  (
    'constructor __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ ' +
    'getOwnPropertyDescriptor getOwnPropertyDescriptors'
  ).split(' '),
)
const REFUSED_NODES: Readonly<Record<string, string>> = {
  ImportExpression: 'it imports',
  MetaProperty: 'it asks for what called it',
  WithStatement: 'it changes what names mean',
  DebuggerStatement: 'it stops for a debugger',
  StaticBlock: 'it does something where it is only defined',
}

/** A module of jco in the form in which a box evaluates it, and the syntax tree of that. */
export type ParsedScript = {
  readonly text: string
  readonly program: Program
  readonly statements: readonly Statement[]
}

/** @returns a text where it is none: how it differs from what jco emits. */
export function parseScript(module: string): ParsedScript | string {
  const text = plainScript(module)
  let program: Program
  try {
    program = parse(text, { ecmaVersion: 'latest', sourceType: 'script' })
  } catch (error) {
    return `it cannot be parsed: ${error instanceof Error ? error.message : 'its nesting is too deep'}`
  }
  const statements = statementsOf(program)
  return statements === undefined ? 'it ends before its end' : { text, program, statements }
}

/**
 * How generated JavaScript differs from what jco emits: it may consist of definitions alone, may name no globals but
 * those that jco's runtime needs, and may neither import nor reach what makes code of text where that can be seen.
 *
 * It is judged in the very form in which a box evaluates it ({@link plainScript}).
 *
 * @returns undefined where it does not differ.
 */
export function faultOfScript({ text, program, statements }: ParsedScript): string | undefined {
  return faultOfStatements(statements) ?? faultOfNodes(program) ?? faultOfNames(program, text)
}

/** The statements between the head and the tail of the plain script; undefined where the script ends that early. */
function statementsOf({ body: [only, ...more] }: Program): readonly Statement[] | undefined {
  if (more.length > 0 || only?.type !== 'ExpressionStatement' || only.expression.type !== 'CallExpression')
    return undefined
  const { callee } = only.expression
  return callee.type === 'FunctionExpression' ? callee.body.body.slice(1, -1) : undefined
}

function faultOfStatements(statements: readonly Statement[]): string | undefined {
  const odd = statements.find((statement) => !isDefinition(statement))
  if (odd !== undefined) return `it does something where it is loaded (${odd.type})`
  const entries = statements.filter((node) => node.type === 'FunctionDeclaration' && node.id.name === ENTRY)
  return entries.length === 1 ? undefined : `it does not export one function "${ENTRY}"`
}

/** The first fault of a node anywhere in it. */
function faultOfNodes(program: AnyNode): string | undefined {
  let found: string | undefined
  const visit = (node: AnyNode): void => {
    found ??= REFUSED_NODES[node.type] ?? faultOfKey(node)
    eachPart(node, visit)
  }
  visit(program)
  return found
}

/**
 * Such a name as a text alone does nothing: a case of an enumeration may have it, a method of a class as well. A field of
 * a record or a flag may not: jco reads it from whatever value the host gave, where it finds what every object inherits.
 * Other names that objects inherit (`toString`, `valueOf`) lead nowhere.
 */
function faultOfKey(node: AnyNode): string | undefined {
  if (node.type !== 'MemberExpression' && node.type !== 'Property') return undefined
  const key = node.type === 'Property' ? node.key : node.property
  const name = !node.computed && key.type === 'Identifier' ? key.name : textOf(key)
  return name !== undefined && REFUSED_NAMES.has(name)
    ? `it names the property "${name}", by which JavaScript reaches what makes code of text`
    : undefined
}

/** The text that an expression comes to, where it is made of nothing but texts. */
function textOf(node: AnyNode): string | undefined {
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string' ? node.value : undefined
    case 'TemplateLiteral':
      return joined([...node.quasis, ...node.expressions].toSorted((a, b) => a.start - b.start))
    case 'TemplateElement':
      return node.value.cooked ?? undefined
    case 'BinaryExpression':
      return node.operator === '+' ? joined([node.left, node.right]) : undefined
    case 'ArrayExpression':
      return node.elements.length === 1 && node.elements[0] ? textOf(node.elements[0]) : undefined
    default:
      return undefined
  }
}

function joined(nodes: readonly AnyNode[]): string | undefined {
  let text = ''
  for (const node of nodes) {
    const part = textOf(node)
    if (part === undefined) return undefined
    text += part
  }
  return text
}

function faultOfNames(program: Program, text: string): string | undefined {
  const odd = freeNames(program).find((name) => !isFamiliar(name, text))
  return odd && `it uses the global "${odd.identifier.name}"`
}

function isFamiliar({ identifier: { name, start }, parent }: FreeName, text: string): boolean {
  if (GLOBALS.has(name) || STRAY.has(name) || text.startsWith(DEBUG_QUESTION, start)) return true
  if (parent.type !== 'MemberExpression' || parent.computed || parent.property.type !== 'Identifier') return false
  return MEMBERS[name]?.includes(parent.property.name) ?? false
}
