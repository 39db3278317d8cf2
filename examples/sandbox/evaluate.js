// The guest: it runs in a box, in QuickJS, with nothing but its memory. Code that does not end meets the limits of its box.
import { finish } from 'brain:tool/host'

const MAX_CHARACTERS = 16_384

export function run({ inputJson }) {
  let printed = ''
  const print = (...values) => {
    printed = `${printed}${values.map(show).join(' ')}\n`.slice(0, MAX_CHARACTERS)
  }
  globalThis.console = { log: print, info: print, warn: print, error: print }
  finish(JSON.stringify(evaluate(JSON.parse(inputJson).code, () => printed)))
  return ''
}

function evaluate(code, printed) {
  try {
    // Indirect, so that the code sees the global scope and no variable of this function.
    // oxlint-disable-next-line no-eval -- it is what this guest is for, and its box is what makes it harmless
    const result = show((0, eval)(code)).slice(0, MAX_CHARACTERS)
    return { status: 'ok', value: { result, printed: printed() } }
  } catch (error) {
    const message = `${String(error)}\n${printed()}`.trim().slice(0, 4000)
    return { status: 'error', error: { code: 'code_failed', message } }
  }
}

function show(value) {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
