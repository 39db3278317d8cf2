import { z } from 'zod'

/**
 * A list of which only the first wrong element is told: a stranger's may hold millions, and `z.array` says something of
 * each, for minutes and gigabytes.
 *
 * @param most elements; default: any number.
 */
export const listOf = <Element extends z.ZodType>(element: Element, most = Number.POSITIVE_INFINITY) =>
  z.custom<readonly z.input<Element>[]>(Array.isArray, 'must be a list').transform((items, context) => {
    if (items.length > most) {
      context.addIssue({ code: 'custom', message: `must have at most ${most} elements` })
      return z.NEVER
    }
    const list: z.output<Element>[] = []
    for (const [index, item] of items.entries()) {
      const parsed = element.safeParse(item)
      if (!parsed.success) {
        for (const { path, message } of parsed.error.issues)
          context.addIssue({ code: 'custom', path: [index, ...path], message })
        return z.NEVER
      }
      list.push(parsed.data)
    }
    return list
  })
