import type { SandboxLevel } from '../sandbox.ts'
import { spawnBoxed } from './spawn-boxed.ts'

const MIB = 1024 * 1024
const PROGRAM = Buffer.from(`require('node:fs').writeSync(3, 'up')`)
const WORDS = 400
const TRIAL_MS = 20_000

/**
 * Starts a box that says a word and ends.
 *
 * @returns undefined when it did, else what happened instead
 */
export function trialBox(level: SandboxLevel, launcher: Buffer): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  let said = ''
  let words = ''
  const box = spawnBoxed(
    { level, launcher, program: PROGRAM, nodeFlags: [], limits: { dataBytes: 1024 * MIB, cpuSecs: 10 } },
    {
      onChannel: { onBytes: (bytes) => (said += bytes.toString('latin1')) },
      onOutput: (_fd, bytes) => (words = (words + bytes.toString('utf8')).slice(0, WORDS)),
      onExit: (how) => {
        // What it wrote last may not have been read yet.
        setImmediate(() => {
          for (const channel of [box.channel, ...box.output]) channel.close()
          resolve(
            said === 'up' ? undefined : [how, ...words.trim().split('\n')].filter((part) => part !== '').join(': '),
          )
        })
      },
    },
  )
  const timer = setTimeout(() => box.kill(), TRIAL_MS)
  return promise.finally(() => clearTimeout(timer))
}
