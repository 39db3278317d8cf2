// Runs what hostile JavaScript tries in a real box, and says what came of it.
import { loadScripts } from '../bundle.ts'
import { runBoxed } from '../launch/run-boxed.ts'
import type { SandboxLevel } from '../sandbox.ts'
import { ATTEMPTS, type Attempt } from './attempts.ts'
import { openAttacked } from './attacked.ts'
import { hostileSource } from './hostile-program.ts'

/** `whole`: as components run. `system`: with what the operating system denies by itself, without the flags of Node. */
export type Walls = 'whole' | 'system'

export type AttemptOutcome = {
  readonly name: string
  readonly category: string
  readonly walls: Walls
  /** `unknown`: the box said nothing of it, which is no pass. */
  readonly outcome: 'denied' | 'through' | 'unknown'
  /** What the attempt was answered. */
  readonly detail: string
}

const MIB = 1024 * 1024
const LIMITS = { dataBytes: 1024 * MIB, cpuSecs: 30 }
const ATTEMPTS_MS = 60_000
const LONGEST_OUTPUT = 256 * 1024
/** Later flags win: these take back what every box is started with. */
const WITHOUT_NODES_OWN = ['--no-permission', '--experimental-ffi']

/** Attempts that say something about these walls, and harm nothing where a box does not hold. */
export const auditedAttempts = (walls: Walls): readonly Attempt[] =>
  ATTEMPTS.filter(({ reach, needs }) => {
    if (reach === 'machine') return false
    // Within the process they are for the flags of Node to deny; by itself Node without them has no system calls.
    return walls === 'whole' ? needs === undefined : reach !== 'inner'
  })

/**
 * Runs attempts in one box of this level.
 *
 * @throws BrainError `internal` when the scripts of the sandbox cannot be loaded
 */
export async function runAttempts(
  level: SandboxLevel,
  walls: Walls,
  attempts: readonly Attempt[] = auditedAttempts(walls),
): Promise<readonly AttemptOutcome[]> {
  await using attacked = await openAttacked()
  const { dir, port } = attacked
  const source = hostileSource({ dir, port, pid: process.pid }, attempts)
  const { answers, end } = await answersOfBox(level, walls, source)
  return attempts.map(({ name, category }) => {
    const answer = answers?.[name]
    if (answer === undefined) return { name, category, walls, outcome: 'unknown', detail: `the box ended: ${end}` }
    return { name, category, walls, outcome: answer === 'THROUGH' ? 'through' : 'denied', detail: answer }
  })
}

type BoxAnswers = { readonly answers: Readonly<Record<string, string>> | undefined; readonly end: string }

async function answersOfBox(level: SandboxLevel, walls: Walls, source: string): Promise<BoxAnswers> {
  const { launcher } = await loadScripts()
  const { said, how } = await runBoxed(
    {
      level,
      launcher,
      program: Buffer.from(`${source}\nattempt().then((text) => { fs.writeSync(3, text); process.exit() })`),
      nodeFlags: walls === 'whole' ? [] : WITHOUT_NODES_OWN,
      limits: LIMITS,
    },
    { ms: ATTEMPTS_MS, most: LONGEST_OUTPUT },
  )
  return { answers: parseAnswers(said), end: how }
}

/** What a box says is text of a stranger, also here. */
function parseAnswers(text: string): Readonly<Record<string, string>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null) return undefined
    return Object.fromEntries(
      Object.entries(parsed).map(([name, answer]) => [
        name,
        String(answer)
          .replaceAll(/[^\x20-\x7e]/g, '?')
          .slice(0, 60),
      ]),
    )
  } catch {
    return undefined
  }
}
