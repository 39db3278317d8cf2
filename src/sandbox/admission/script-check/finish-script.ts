import { Script } from 'node:vm'
import { plainScript } from '../../wire/plain-script.ts'
import { faultOfScript, parseScript } from './fault-of-script.ts'
import { hoistDefinitions } from './hoist-definitions.ts'

/** A script that boxes may load, or how it differs from what the generator emits. */
export type Finished = { readonly script: string } | { readonly fault: string }

/**
 * Judges what the generator made, and rearranges it for boxes: of one syntax tree, since parsing is what takes longest.
 * What moves are whole statements and expressions of the text that was judged, which is plain, and made plain once more
 * by boxes it stays as it is.
 */
export function finishScript(module: string): Finished {
  const parsed = parseScript(module)
  if (typeof parsed === 'string') return { fault: parsed }
  const fault = faultOfScript(parsed)
  if (fault !== undefined) return { fault }
  const hoisted = hoistDefinitions(parsed)
  if (hoisted === undefined) return { script: module }
  try {
    void new Script(plainScript(hoisted), { filename: 'tool.js' })
  } catch {
    return { script: module }
  }
  return { script: hoisted }
}
