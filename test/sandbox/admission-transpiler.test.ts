import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { defaultLimits } from '../../src/contract/limits.ts'
import { transpile } from '../../src/sandbox/admission/transpile.ts'
import { buildTranspiler, bundleTranspiler, readTranspiler } from '../../src/sandbox/admission/transpiler/program.ts'
import { toBuffer, toolComponent } from '../fixtures/wasm-builder.ts'
import { spawnInBox } from './admission-store.ts'

test('bundleTranspiler() writes what a published package needs, and nothing else', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'brain-transpiler-'))
  const out = join(directory, 'dist')
  await bundleTranspiler(out)
  expect((await readdir(out)).toSorted()).toEqual([
    'script-check.cjs',
    'transpiler.cjs',
    'transpiler.core.wasm',
    'transpiler.core2.wasm',
  ])
  const read = await readTranspiler(out)
  await rm(directory, { recursive: true })
  expect(read).toEqual(await buildTranspiler())
  // The only modules of Node that it asks for, by a bundler's name for `require`.
  const asked = new Set(read.script.toString().match(/"node:[a-z/]+"/g))
  expect(asked).toEqual(new Set(['"node:fs"']))

  const upload = toBuffer(toolComponent())
  const made = await transpile(upload, [], {
    transpiler: read,
    spawn: spawnInBox,
    limits: defaultLimits,
    signal: new AbortController().signal,
  })
  expect(made.js.includes('export function instantiate(')).toBe(true)
  expect(made.cores).toHaveLength(1)
})
