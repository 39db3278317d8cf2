import type { TestContext } from 'vitest'
import { probeLevels } from '../../src/sandbox/level.ts'
import type { SandboxLevel } from '../../src/sandbox/sandbox.ts'

export const LEVELS = ['bubblewrap', 'landlock'] as const

const probes = await probeLevels()

/** The level, for a test that is about it. A check that this machine cannot make must not look like one that passed. */
export function offeredLevel(name: (typeof LEVELS)[number], context: TestContext): SandboxLevel {
  const probe = probes.find((candidate) => candidate.name === name)
  if (probe?.level !== undefined) return probe.level
  const reason = `level ${name}: ${probe?.reason}`
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${reason}`)
  process.stderr.write(`\nNOT CHECKED: ${reason}\n\n`)
  context.skip(reason)
  throw new Error(reason)
}
