/**
 * A resource class that jco can link, and of which no guest ever holds an instance. `methods` must name every method of
 * the interface, or this does not compile.
 */
export function deniedResource<Shape>(
  deny: () => never,
  methods: Readonly<Record<keyof Shape, true>>,
): new () => object {
  class Denied {}
  for (const name of Object.keys(methods)) Object.defineProperty(Denied.prototype, name, { value: deny })
  return Denied
}
