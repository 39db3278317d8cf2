/** WebAssembly of a tool or an agentloop, made by {@link component}. Admitted once per client and object. */
export type Component = { readonly source: URL | Uint8Array }

/** Two copies of the package know each other's components by it. */
const BRAND = Symbol.for('@aexhq/brain/component')

/**
 * Names the WebAssembly of a tool or an agentloop. Nothing is read before a session is created with it, and then once: a
 * client remembers for this object that it was admitted, but not that it failed.
 *
 * @param source the bytes, which are copied, or a URL: `file:` is read from disk (not in browsers), `http:` and `https:`
 * are fetched
 * @throws TypeError for anything else
 */
export function component(source: URL | Uint8Array): Component {
  if (source instanceof Uint8Array) return branded(Uint8Array.from(source))
  if (!(source instanceof URL) || !['file:', 'http:', 'https:'].includes(source.protocol))
    throw new TypeError('Cannot declare a component: it must be bytes or a URL with file:, http: or https:')
  return branded(new URL(source))
}

const branded = (source: URL | Uint8Array): Component =>
  Object.freeze(Object.defineProperties({} as Component, { source: { value: source }, [BRAND]: { value: true } }))

export const isComponent = (value: unknown): value is Component =>
  typeof value === 'object' && value !== null && BRAND in value
