import { z } from 'zod'
import { isJsonObject } from '../kernel/json.ts'

/** More members than anything of ours has: of the wrong ones among them, something would be said of each. */
const MOST_MEMBERS = 1024

/** Members under names of the client's. zod passes over `__proto__` in silence, which would lose what was sent. */
export const named = <Value extends z.ZodType>(name: z.ZodType<string, string>, value: Value, most = MOST_MEMBERS) =>
  z
    .preprocess(
      (given, context) => {
        if (isJsonObject(given) && Object.hasOwn(given, '__proto__'))
          context.addIssue({ code: 'custom', message: 'must not have a member "__proto__"' })
        if (isJsonObject(given) && Object.keys(given).length > most)
          context.addIssue({ code: 'custom', message: `must have at most ${most} members` })
        return given
      },
      z.record(name, value),
    )
    .meta({ maxProperties: most })
