import type { AnyNode, Statement } from 'acorn'

/** Evaluating it has no effect but the names that it binds. */
export function isDefinition(node: Statement): boolean {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'EmptyStatement':
      return true
    case 'ExpressionStatement':
      return node.directive !== undefined
    case 'ClassDeclaration':
      return isInertClass(node)
    case 'VariableDeclaration':
      return node.declarations.every(({ id, init }) => id.type === 'Identifier' && (!init || isInert(init)))
    default:
      return false
  }
}

function isInertClass(node: Statement & { type: 'ClassDeclaration' }): boolean {
  if (node.superClass && node.superClass.type !== 'Identifier') return false
  return node.body.body.every((member) => {
    if (member.type === 'StaticBlock' || !isInertKey(member.computed, member.key)) return false
    return member.type === 'MethodDefinition' || !member.static || !member.value || isInert(member.value)
  })
}

function isInertKey(isComputed: boolean, key: AnyNode): boolean {
  if (!isComputed || isInert(key)) return true
  return key.type === 'MemberExpression' && !key.computed && isNamed(key.object, 'Symbol')
}

const isNamed = (node: AnyNode, name: string): boolean => node.type === 'Identifier' && node.name === name

function isInert(node: AnyNode): boolean {
  switch (node.type) {
    case 'Literal':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return true
    case 'TemplateLiteral':
      return node.expressions.length === 0
    case 'UnaryExpression':
      return node.argument.type === 'Literal'
    case 'ArrayExpression':
      return node.elements.every((element) => element !== null && isInert(element))
    case 'ObjectExpression':
      return node.properties.every(
        (part) => part.type === 'Property' && isInertKey(part.computed, part.key) && isInert(part.value),
      )
    case 'CallExpression':
      return isNamed(node.callee, 'Symbol') && node.arguments.every((argument) => argument.type === 'Literal')
    default:
      return false
  }
}
