import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openAttacked } from './attacked.ts'
import type { Attempt } from './attempts.ts'
import { FRAME_ATTEMPTS, FRAME_PRELUDE } from './frame-attempts.ts'
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
  return await answersOf(script, dir)
}

/** Sends the same frames to somebody who takes whatever comes: all of them leave, and their sender lives on. */
export function runFrameControl(): Promise<ControlAnswers> {
  const attacks = FRAME_ATTEMPTS.map(({ name, source }) => `[${JSON.stringify(name)}, () => { ${source} }]`)
  const script = `${FRAME_PRELUDE}
const sent = {}
for (const [name, attack] of [${attacks.join(',\n')}]) { attack(); sent[name] = 'THROUGH' }
process.stdout.write(JSON.stringify(sent))`
  return answersOf(script, '/')
}

async function answersOf(script: string, cwd: string): Promise<ControlAnswers> {
  const flags = ['--no-warnings', '--expose-gc', '--input-type=module', '-e', script]
  const child = spawn(process.execPath, flags, { cwd, stdio: ['ignore', 'pipe', 'ignore', 'pipe'] })
  const closed = once(child, 'close')
  let text = ''
  const [, stdout, , channel] = child.stdio
  stdout?.on('data', (piece: Buffer) => (text += piece.toString('latin1')))
  channel?.on('data', () => {})
  await closed
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>))
}
