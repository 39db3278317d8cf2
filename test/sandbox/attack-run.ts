// Runs everything that hostile JavaScript tries as a component would, in a box, and keeps what came of it. A process of
// its own, so that it can be an ordinary user's: arguments are the level, the attacked directory and port.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostileSource } from '../../src/sandbox/audit/hostile-program.ts'
import type { SandboxLevel } from '../../src/sandbox/sandbox.ts'
import { openLab } from './lab.ts'

const [, , level = '', dir = '', port = ''] = process.argv
await using lab = await openLab({}, { level: JSON.parse(level) as SandboxLevel })
const { supervisor } = await lab.sandbox.status()
const source = hostileSource({ dir, port: Number(port), pid: supervisor?.pid ?? 0 })
const instantiate = 'export async function instantiate() { const text = await attempt(); return { run: () => text } }'
const { end } = await lab.call(lab.plant(`${source}\n${instantiate}\n`))
writeFileSync(join(dir, 'outcome.json'), JSON.stringify(end))
