// Runs the hostile guest of a directory in a box and prints what came of it. A process of its own, so that it can be an
// ordinary user's: arguments are the data directory, the component, and the address of what is attacked.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { plant, openLab } from './lab.ts'

const [, , dir = '', port = '', skip = '[]'] = process.argv
await using lab = await openLab()
const { supervisor } = await lab.sandbox.status()
const target = { dir, port: Number(port), pid: supervisor?.pid, skip: JSON.parse(skip) as string[] }
const source = readFileSync(new URL('../fixtures/hostile-guest.js', import.meta.url), 'utf8')
const id = plant(lab.data, source.replace('T = TARGET', `T = ${JSON.stringify(target)}`))
const { end } = await lab.call(id)
writeFileSync(join(dir, 'outcome.json'), JSON.stringify(end))
