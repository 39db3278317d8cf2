import { globSync, rmSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { bundledOnce } from '../../../src/sandbox/bundle-cache.ts'

const NAME = `test${process.pid}`
const kept = (): string[] => globSync(`node_modules/.cache/brain/scripts/${NAME}-*`)
afterAll(() => kept().forEach((path) => rmSync(path, { recursive: true })))

it('bundles once, and again when what was kept is damaged', async () => {
  let bundled = 0
  const bundle = async (): Promise<Buffer[]> => [Buffer.from(`first of ${++bundled}`), Buffer.from('second')]
  const texts = async (): Promise<string[]> => (await bundledOnce(NAME, bundle)).map(String)
  expect(await texts()).toEqual(['first of 1', 'second'])
  expect(await texts()).toEqual(['first of 1', 'second'])
  const [directory = ''] = kept()
  rmSync(`${directory}/1`)
  expect(await texts()).toEqual(['first of 2', 'second'])
  expect(await texts()).toEqual(['first of 2', 'second'])
})

it('tells concurrent callers the same', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => bundledOnce(NAME, async () => [Buffer.from('x')])))
  expect(new Set(all.map((files) => files.length)).size).toBe(1)
})
