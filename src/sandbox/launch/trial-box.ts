import type { SandboxLevel } from '../sandbox.ts'
import { runBoxed } from './run-boxed.ts'

const MIB = 1024 * 1024
const WORD = 'up'
const PROGRAM = Buffer.from(`require('node:fs').writeSync(3, '${WORD}')`)
const TRIAL_MS = 20_000

/**
 * Starts a box that says a word and ends.
 *
 * @returns undefined when it did, else what happened instead
 */
export async function trialBox(level: SandboxLevel, launcher: Buffer): Promise<string | undefined> {
  const limits = { dataBytes: 1024 * MIB, cpuSecs: 10 }
  const boxed = { level, launcher, program: PROGRAM, nodeFlags: [], limits }
  // One character more: only the word itself will do.
  const { said, words, how } = await runBoxed(boxed, { ms: TRIAL_MS, most: WORD.length + 1 })
  if (said === WORD) return undefined
  return [how, ...words.trim().split('\n')].filter((part) => part !== '').join(': ')
}
