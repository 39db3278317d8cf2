import type { AnyNode } from 'acorn'

const isNode = (value: unknown): value is AnyNode => typeof value === 'object' && value !== null && 'type' in value

/** Calls `visit` with the nodes of which a node of a syntax tree consists. A tree of a script has a million of them. */
export function eachPart(node: AnyNode, visit: (part: AnyNode) => void): void {
  const values = node as unknown as Readonly<Record<string, unknown>>
  for (const key in values) {
    const value = values[key]
    if (Array.isArray(value)) for (const part of value) visitNode(part, visit)
    else visitNode(value, visit)
  }
}

function visitNode(value: unknown, visit: (part: AnyNode) => void): void {
  if (isNode(value)) visit(value)
}
