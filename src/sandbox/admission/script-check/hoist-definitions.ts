import type { AnyNode, FunctionDeclaration, Statement } from 'acorn'
import { boundNames } from '../syntax/bound-names.ts'
import { eachPart } from '../syntax/each-part.ts'
import { isDefinition } from '../syntax/is-definition.ts'
import type { ParsedScript } from './fault-of-script.ts'

/** Debug output of jco's runtime: some fifty calls in a host call, each of which makes an object to say nothing. */
const DEBUG = '_debugLog'
/** What the script exports besides `instantiate`, and the names of what `instantiate` is given. */
const RELEASE = 'release'
const GIVEN = '$given'

/**
 * jco's script with its definitions made once. jco puts the whole of its runtime, classes and functions without a state
 * of their own, into the body of `instantiate`: every instance then gets new ones, nothing that V8 learns of one holds
 * for the next, and a call costs a third more (decision 0006).
 *
 * Here functions, classes and constants move out of that body, and of the generator in it that makes the core
 * instances. Variables move out as well but are set where they stood, each time. So two instances of one script do not
 * live at a time: a box makes one after the other, and `release()` lets go of the last one.
 *
 * @returns undefined where it is not of the shape that is understood: as it is it does the same, slower.
 */
export function hoistDefinitions({ text, statements }: ParsedScript): string | undefined {
  const entry = statements.find(
    (node): node is FunctionDeclaration => node.type === 'FunctionDeclaration' && node.id.name === 'instantiate',
  )
  if (entry === undefined || entry.async || entry.generator) return undefined
  const hoisting = new Hoisting(text, debugCalls(entry))
  for (const node of statements) if (node !== entry) hoisting.keep(node)
  const parameters = entry.params.flatMap(boundNames)
  for (const name of parameters) hoisting.variable(name)
  const body = hoisting.body(entry.body.body)
  if (!hoisting.isUnderstood) return undefined
  const { definitions, variables } = hoisting
  return [
    `let ${variables.join(', ')};`,
    ...definitions,
    `function ${RELEASE}() {\n${variables.map((name) => `${name} = undefined;`).join('\n')}\n}`,
    `function instantiate(...${GIVEN}) {\n[${parameters.join(', ')}] = ${GIVEN};\n${body}}\n`,
  ].join('\n')
}

type Span = { readonly start: number; readonly end: number }

/** Splits bodies into what is defined once and what is done each time. */
class Hoisting {
  readonly definitions: string[] = []
  readonly #script: string
  readonly #cuts: readonly Span[]
  readonly #variables = new Set<string>()
  readonly #names = new Set<string>([RELEASE, GIVEN, 'instantiate'])
  #isUnderstood = true

  /** @param cuts what is left out, in the order of the script */
  constructor(script: string, cuts: readonly Span[]) {
    this.#script = script
    this.#cuts = cuts
  }

  /**
   * False where a name would have come to mean something else, another's in the same scope now or the engine's own, or
   * where something would happen earlier than it did.
   */
  get isUnderstood(): boolean {
    return this.#isUnderstood
  }

  get variables(): readonly string[] {
    return [...this.#variables]
  }

  variable(name: string): void {
    this.#claim(name)
    this.#variables.add(name)
  }

  /** What stands outside `instantiate` already. */
  keep(node: Statement): void {
    if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') this.#claim(node.id.name)
    if (node.type === 'VariableDeclaration')
      for (const { id } of node.declarations) for (const name of boundNames(id)) this.#claim(name)
    this.definitions.push(this.#text(node))
  }

  /** What remains of a function's body. */
  body(statements: readonly Statement[]): string {
    return statements.map((statement) => `${this.#statement(statement)}\n`).join('')
  }

  #claim(name: string): void {
    if (this.#names.has(name) || Object.hasOwn(globalThis, name)) this.#isUnderstood = false
    this.#names.add(name)
  }

  #statement(node: Statement): string {
    if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') {
      this.#claim(node.id.name)
      // Out there it would take effect where the script is loaded.
      if (!isDefinition(node)) this.#isUnderstood = false
      this.definitions.push(this.#text(node))
      return ''
    }
    if (node.type !== 'VariableDeclaration') return this.#text(node)
    return node.declarations
      .map(({ id, init }) => {
        if (node.kind === 'const' && id.type === 'Identifier' && isConstant(init)) {
          this.#claim(id.name)
          this.definitions.push(`const ${id.name} = ${this.#text(init)};`)
          return ''
        }
        for (const name of boundNames(id)) this.variable(name)
        // The semicolon before it ends whatever the script left to its line break.
        return `;(${this.#text(id)} = ${init ? this.#value(init) : 'undefined'});`
      })
      .join('\n')
  }

  /** The generator that is called where it is written: its own body is split as well. */
  #value(node: AnyNode): string {
    if (node.type !== 'CallExpression' || node.arguments.length > 0) return this.#text(node)
    const { callee } = node
    if (callee.type !== 'FunctionExpression' || !callee.generator || callee.params.length > 0) return this.#text(node)
    return `(function* () {\n${this.body(callee.body.body)}})()`
  }

  #text({ start, end }: Span): string {
    let text = ''
    let at = start
    for (let index = this.#firstCut(start); ; index++) {
      const cut = this.#cuts[index]
      if (cut === undefined || cut.start >= end) return text + this.#script.slice(at, end)
      text += `${this.#script.slice(at, cut.start)};`
      at = cut.end
    }
  }

  #firstCut(from: number): number {
    let [low, high] = [0, this.#cuts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#cuts[middle]?.start ?? from) < from) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Has no state, so that all instances can share it. */
function isConstant(node: AnyNode | null | undefined): node is AnyNode {
  switch (node?.type) {
    case 'Literal':
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
      return true
    default:
      return false
  }
}

/** Statements that only call DEBUG, in the order of the script. */
function debugCalls(entry: AnyNode): Span[] {
  const found: Span[] = []
  const visit = (node: AnyNode): void => {
    if (isDebugCall(node)) found.push(node)
    else eachPart(node, visit)
  }
  visit(entry)
  return found
}

function isDebugCall(node: AnyNode): boolean {
  if (node.type !== 'ExpressionStatement' || node.expression.type !== 'CallExpression') return false
  const { callee } = node.expression
  return callee.type === 'Identifier' && callee.name === DEBUG
}
