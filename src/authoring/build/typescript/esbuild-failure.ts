import { relative, resolve } from 'node:path'
import type { BuildFailure, Message } from 'esbuild'
import { messageOf } from '../../../kernel/errors.ts'

const MOST = 5

/** What of `@aexhq/brain` is not in a component shows as an export that its entry for components has not. */
const NO_EXPORT = /^No matching export in ".*component\.[jt]s" for import "(.+)"$/

/** What esbuild found wrong, with places, as the rest of a message. */
export function esbuildFailure(error: unknown, folder: string): string {
  const { errors } = error as Partial<BuildFailure>
  if (errors === undefined || errors.length === 0) return messageOf(error)
  const more = errors.length > MOST ? `\n  and ${errors.length - MOST} more` : ''
  return (
    errors
      .slice(0, MOST)
      .map((one) => textOf(one, folder))
      .join('\n  ') + more
  )
}

function textOf({ text, location }: Message, folder: string): string {
  const said = explained(text)
  if (location === null) return said
  // esbuild names files as they are seen from the folder in which it works, which is this one.
  return `${relative(folder, resolve(folder, location.file))}:${location.line}:${location.column + 1}: ${said}`
}

function explained(text: string): string {
  if (text.startsWith('Top-level await is not available')) return 'a component cannot wait at its top: wait in run'
  const [, name] = NO_EXPORT.exec(text) ?? []
  if (name === undefined) return text
  return `"${name}" of @aexhq/brain is for applications, and a component has tool and BrainError of it: declare the tool in a file of its own`
}
