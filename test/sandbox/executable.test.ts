import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLab } from './lab.ts'

let lab: Awaited<ReturnType<typeof openLab>>
beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab[Symbol.asyncDispose]())

it('a box cannot have a descriptor with the number that its filter lets it execute', async () => {
  const run = `const fs = process.getBuiltinModule('node:fs'); const made = []; try { for (;;) made.push(fs.openSync('/dev/null')) } catch {} return String(Math.max(...made))`
  const id = lab.plant(`export function instantiate() { return { run() { ${run} } } }\n`)
  const { end } = await lab.call(id)
  expect(end.type).toBe('returned')
  expect(Number(end.type === 'returned' ? end.text : NaN)).toBeLessThan(64)
})
