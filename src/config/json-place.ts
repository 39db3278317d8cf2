/** The line in which the value of a path begins, from 1. `text` is JSON that was parsed; a path that leads nowhere ends where it stops. */
export function lineOf(text: string, path: readonly PropertyKey[]): number {
  let at = skip(text, 0)
  for (const step of path) {
    const next = typeof step === 'number' ? element(text, at, step) : member(text, at, String(step))
    if (next === undefined) break
    at = next
  }
  return lineAt(text, at)
}

/** The line of a character, from 1. */
export const lineAt = (text: string, at: number): number => text.slice(0, at).split('\n').length

const BLANK = /[\s,:]/
const skip = (text: string, at: number): number => {
  let next = at
  while (next < text.length && BLANK.test(text[next] ?? '')) next++
  return next
}

/** Where a value that begins at `at` is over. */
function endOf(text: string, at: number): number {
  const first = text[at]
  if (first === '"') return endOfString(text, at)
  if (first !== '{' && first !== '[') {
    let next = at
    while (next < text.length && !/[,\]}\s]/.test(text[next] ?? '')) next++
    return next
  }
  let depth = 0
  for (let next = at; next < text.length; next++) {
    const char = text[next]
    if (char === '"') next = endOfString(text, next) - 1
    else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return next + 1
  }
  return text.length
}

/** Where a text that begins at `at` is over. */
export function endOfString(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next++) {
    if (text[next] === '\\') next++
    else if (text[next] === '"') return next + 1
  }
  return text.length
}

function element(text: string, at: number, index: number): number | undefined {
  if (text[at] !== '[') return undefined
  let next = skip(text, at + 1)
  for (let left = index; left > 0 && text[next] !== ']'; left--) next = skip(text, endOf(text, next))
  return text[next] === ']' ? undefined : next
}

function member(text: string, at: number, name: string): number | undefined {
  if (text[at] !== '{') return undefined
  for (let next = skip(text, at + 1); text[next] === '"';) {
    const end = endOfString(text, next)
    const value = skip(text, end)
    if (JSON.parse(text.slice(next, end)) === name) return value
    next = skip(text, endOf(text, value))
  }
  return undefined
}
