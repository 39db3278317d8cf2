import type { DeclaredTool } from '../declare/declared-tool.ts'

/** What is left of a declaration in a component. */
export type GuestTool = Pick<DeclaredTool, 'run' | 'input' | 'output' | 'options'> & { readonly name: string }

const tools = new WeakMap<object, GuestTool>()

/**
 * Takes the place of `tool()` in a component: what is declared was checked while the component was built, and nobody places
 * a tool there.
 */
export function tool(declaration: GuestTool): object {
  const { name } = declaration
  const factory = (): never => {
    throw new Error(`Cannot place tool "${name}" in a component: applications do that`)
  }
  tools.set(factory, declaration)
  return factory
}

/** What was declared; undefined for anything else. */
export const guestToolOf = (factory: unknown): GuestTool | undefined =>
  typeof factory === 'function' ? tools.get(factory) : undefined
