import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openAttacked } from './attacked.ts'
import type { Attempt } from './attempts.ts'
import { hostileSource } from './hostile-program.ts'

/** What was answered, by name of the attempt; `THROUGH` where it succeeded. */
export type ControlAnswers = ReadonlyMap<string, string>

/**
 * Runs attempts in a plain Node without a box: only what succeeds there proves something when it is denied in one.
 *
 * @param attempts none that harms other processes, or ends its own
 */
export async function runControl(attempts: readonly Attempt[]): Promise<ControlAnswers> {
  await using attacked = await openAttacked()
  const { dir, port } = attacked
  const source = hostileSource({ dir, port, pid: process.pid }, attempts)
  const script = `${source}\nprocess.stdout.write(await attempt(), () => process.exit())`
  const flags = ['--no-warnings', '--expose-gc', '--input-type=module', '-e', script]
  const child = spawn(process.execPath, flags, { cwd: dir, stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = once(child, 'close')
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await closed
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>))
}
