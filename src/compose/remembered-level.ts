import { createHash } from 'node:crypto'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram, probeLevel, type ProbeOptions } from '../sandbox/level.ts'
import type { SandboxLevel } from '../sandbox/sandbox.ts'

/** Changes when the machine starts again, and with it what its kernel was told at start. */
const BOOT_ID = '/proc/sys/kernel/random/boot_id'

export type RememberedLevel = {
  readonly level: SandboxLevel
  /** Must be called when no box could be used: what was true when the level was probed may have changed since. */
  readonly forget: () => Promise<void>
}

/**
 * The level of this machine as an earlier command of the same user found it since the machine was started. Probing starts
 * a box, which takes as long as everything else that a short command does.
 */
export async function rememberedLevel(directory: string, options: ProbeOptions): Promise<RememberedLevel> {
  const file = join(directory, 'level.json')
  const forget = (): Promise<void> => rm(file, { force: true })
  const circumstances = await circumstancesOf(options)
  const known = await readFile(file, 'utf8').catch(() => '')
  const [name, text = ''] = known.split('\n', 2)
  if (name === circumstances) return { level: JSON.parse(text) as SandboxLevel, forget }
  const level = await probeLevel(options)
  if (level.name !== 'none') await writeFile(file, `${circumstances}\n${JSON.stringify(level)}\n`, { mode: 0o600 })
  return { level, forget }
}

async function circumstancesOf({ searchPath, unsafe }: ProbeOptions): Promise<string> {
  const program = findProgram('bwrap', searchPath ?? '')
  const facts = program === undefined ? undefined : await stat(program)
  const boot = await readFile(BOOT_ID, 'utf8').catch(() => String(process.pid))
  const all = [boot, process.version, process.getuid?.(), unsafe, program, facts?.mtimeMs, facts?.mode]
  return createHash('sha256').update(JSON.stringify(all)).digest('hex')
}
