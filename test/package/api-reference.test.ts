import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

type Reflection = { readonly name: string; readonly children?: readonly Reflection[] }

it('is written without a warning: everything that the client exports has a docstring, and its links lead somewhere', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'brain-reference-'))
  try {
    const json = join(folder, 'reference.json')
    const typedoc = join(root, '.ci/api-reference/node_modules/typedoc/bin/typedoc')
    const options = join(root, '.ci/api-reference/typedoc.json')
    const { stdout, stderr } = await run(process.execPath, [typedoc, '--options', options, '--json', json])
    expect(stdout + stderr).not.toMatch(/warning|error/i)
    const { children = [] } = JSON.parse(await readFile(json, 'utf8')) as Reflection
    const names = children.flatMap((entry) => (entry.children ?? []).map(({ name }) => `${entry.name}.${name}`))
    expect(names).toEqual(expect.arrayContaining(['index.Brain', 'index.tool', 'interop.openaiChatTools']))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
