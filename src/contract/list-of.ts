import { z } from 'zod'

/** What the lists of {@link listOf} are of, by what they come in as: nothing of a transform tells it. */
export const listElements = new WeakMap<object, { readonly element: z.ZodType; readonly most: number }>()

/**
 * A list of which only the first wrong element is told: a stranger's may hold millions, and `z.array` says something of
 * each, for minutes and gigabytes.
 *
 * @param most elements; default: any number.
 */
export const listOf = <Element extends z.ZodType>(element: Element, most = Number.POSITIVE_INFINITY) => {
  const list = z.custom<readonly z.input<Element>[]>(Array.isArray, 'must be a list').transform((items, context) => {
    if (items.length > most) {
      context.addIssue({ code: 'custom', message: `must have at most ${most} elements` })
      return z.NEVER
    }
    const all: z.output<Element>[] = []
    for (const [index, item] of items.entries()) {
      const parsed = element.safeParse(item)
      if (!parsed.success) {
        for (const { path, message } of parsed.error.issues)
          context.addIssue({ code: 'custom', path: [index, ...path], message })
        return z.NEVER
      }
      all.push(parsed.data)
    }
    return all
  })
  listElements.set(list.def.in, { element, most })
  return list
}
