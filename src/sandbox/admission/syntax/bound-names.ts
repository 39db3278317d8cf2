import type { Pattern } from 'acorn'

/** The names that a pattern binds. */
export function boundNames(pattern: Pattern): string[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((part) => boundNames(part.type === 'Property' ? part.value : part))
    case 'ArrayPattern':
      return pattern.elements.flatMap((part) => (part === null ? [] : boundNames(part)))
    case 'AssignmentPattern':
      return boundNames(pattern.left)
    case 'RestElement':
      return boundNames(pattern.argument)
    case 'MemberExpression':
      return []
    default:
      return pattern satisfies never
  }
}
