import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildTools } from '../../src/authoring/build/build-tools.ts'
import { Kept } from '../../src/authoring/build/kept.ts'
import { QuickBuilds } from '../../src/authoring/build/tool-builder.ts'
import { finishedValue, type ReferenceResult, runComponent } from '../fixtures/reference/run-component.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-quick-'))
})
afterAll(() => rm(folder, { recursive: true }))

const quick = new QuickBuilds()
const roomy = () => quick.roomyComponent.get(() => Promise.reject(new Error('none was made')))

type Source = { readonly exported?: string; readonly name?: string; readonly top?: string; readonly value: string }

/** Builds a tool that answers with an expression. */
async function built({ exported = 'one', name = 'one', top = '', value }: Source): Promise<string> {
  const source = join(folder, 'tool.ts')
  await writeFile(
    source,
    `import { tool } from '@aexhq/brain'
import { z } from 'zod'
${top}
export const ${exported} = tool({
  name: '${name}',
  description: 'Answers.',
  input: z.object({}),
  run: async (_input, ctx) => ctx.finish(await Promise.resolve(${value})),
})`,
  )
  const [tool] = await buildTools(source, { outDirectory: folder, onProgress: () => {}, env: process.env, quick })
  return tool?.component ?? ''
}

const run = async (source: Source): Promise<ReferenceResult> =>
  await runComponent({ component: await built(source), input: {}, configuration: {} })

describe('a quick build of a tool in TypeScript', () => {
  it('makes a component of what the source says now, out of the one with room that it made first', async () => {
    expect(finishedValue(await run({ value: '"first"' }))).toBe('first')
    const first = await roomy()
    expect(finishedValue(await run({ value: '"a little longer"' }))).toBe('a little longer')
    expect(finishedValue(await run({ value: '"last"' }))).toBe('last')
    expect(await roomy()).toBe(first)
  })

  it('says of a component what the source says of the tool', async () => {
    const [metadata] = embeddedMetadata(await readFile(await built({ exported: 'other', name: 'renamed', value: '1' })))
    expect(metadata).toMatchObject({ name: 'renamed' })
    expect(quick.exportedTools).toEqual(['other'])
  })

  it('keeps texts of all scripts, and modules strict', async () => {
    const value = '[text, lone.length, (function () { return this === undefined })()]'
    const top = 'const text = "Größe 語 🙂"\nconst lone = "\\ud800x"'
    expect(finishedValue(await run({ top, value }))).toEqual(['Größe 語 🙂', 2, true])
  })

  it('makes more room for a longer script', async () => {
    const before = await roomy()
    const top = `const long = ${JSON.stringify('brain:room;'.repeat(before.room / 10))}`
    expect(finishedValue(await run({ top, value: 'long.length' }))).toBeGreaterThan(before.room)
    const after = await roomy()
    expect(after.room).toBeGreaterThan(before.room)
    expect(finishedValue(await run({ value: '"short again"' }))).toBe('short again')
    expect(await roomy()).toBe(after)
  })

  it('tells in a call what fails at the top of a module in components alone', async () => {
    const top = 'if (globalThis.navigator === undefined) throw new RangeError("nobody navigates")'
    const { calls } = await run({ top, value: '1' })
    const [{ method, text }] = calls as [(typeof calls)[0]]
    expect({ method, outcome: JSON.parse(text ?? '') as unknown }).toEqual({
      method: 'finish',
      outcome: {
        status: 'error',
        error: { code: 'tool_error', message: 'Cannot load the tool in a component: nobody navigates' },
      },
    })
  })
})

describe('Kept', () => {
  it('makes a thing once, anew where it does not suit, and again after a failure', async () => {
    const kept = new Kept<number>()
    await expect(kept.get(() => Promise.reject(new Error('not yet')))).rejects.toThrow('not yet')
    expect(await kept.get(() => Promise.resolve(1))).toBe(1)
    expect(await kept.get(() => Promise.resolve(2))).toBe(1)
    expect(
      await kept.get(
        () => Promise.resolve(3),
        (made) => made > 1,
      ),
    ).toBe(3)
    expect(await kept.get(() => Promise.resolve(4))).toBe(3)
  })
})
