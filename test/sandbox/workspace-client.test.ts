import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Lab, openLab, until } from './lab.ts'
import { descriptorsOf } from '../support/processes.ts'

let lab: Lab
beforeAll(async () => {
  lab = await openLab({ workspaceBytes: 8 * 1024 * 1024 })
})
afterAll(async () => {
  await lab?.[Symbol.asyncDispose]()
})

async function* pieces(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(part)
}
const readAll = async (workspace: string, path: string): Promise<Buffer> => {
  const { size, body } = await lab.sandbox.files.read(workspace, path)
  const bytes = Buffer.concat(await Array.fromAsync(body))
  expect(bytes.length).toBe(size)
  return bytes
}

describe('Sandbox.files', () => {
  it('writes and reads files of many frames byte for byte, and lists them by path', async () => {
    const { files } = lab.sandbox
    const large = Buffer.from(Array.from({ length: 3_500_000 }, (_, i) => i % 251))
    expect(
      await files.write('s/env', 'deep/large.bin', pieces(large.subarray(0, 2_900_000), large.subarray(2_900_000))),
    ).toEqual({ size: large.length })
    expect(await files.write('s/env', 'empty', pieces())).toEqual({ size: 0 })
    expect((await readAll('s/env', 'deep/large.bin')).equals(large)).toBe(true)
    expect((await readAll('s/env', 'empty')).length).toBe(0)
    const listed = await files.list('s/env', { prefix: '', after: '', limit: 10 })
    expect(listed.map(({ path, size }) => [path, size])).toEqual([
      ['deep/large.bin', large.length],
      ['empty', 0],
    ])
    expect(await files.list('s/env', { prefix: '', after: 'deep/large.bin', limit: 10 })).toHaveLength(1)
  })

  it('gives refusals their code', async () => {
    const { files } = lab.sandbox
    await expect(files.read('s/env', 'nowhere')).rejects.toMatchObject({ name: 'BrainError', code: 'not_found' })
    await expect(files.write('s/env', '../up', pieces(Buffer.of(1)))).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(files.write('s/env', 'huge', pieces(Buffer.alloc(9 * 1024 * 1024)))).rejects.toMatchObject({
      code: 'output_limit',
    })
    await expect(files.remove('s/env', 'nowhere')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('leaves a file as it was when its body fails half-way', async () => {
    const { files } = lab.sandbox
    await files.write('s/env', 'kept', pieces(Buffer.from('before')))
    const failing = (async function* () {
      yield await Promise.resolve(Buffer.from('after'))
      throw new Error('the client went away')
    })()
    await expect(files.write('s/env', 'kept', failing)).rejects.toThrow('the client went away')
    expect((await readAll('s/env', 'kept')).toString()).toBe('before')
  })

  it('a reader that stops early holds nothing up, and slow readers wait for nobody', async () => {
    const { files } = lab.sandbox
    await files.write('s/early', 'file', pieces(Buffer.alloc(3 * 1024 * 1024, 1)))
    const { body } = await files.read('s/early', 'file')
    for await (const piece of body) {
      expect(piece.length).toBeLessThanOrEqual(1024 * 1024)
      break
    }
    expect((await readAll('s/early', 'file')).length).toBe(3 * 1024 * 1024)
  })

  it('a reader that leaves before the first byte leaves nothing open', async () => {
    const { files } = lab.sandbox
    await files.write('s/left', 'file', pieces(Buffer.alloc(10)))
    const { pid = 0 } = (await lab.sandbox.status()).supervisor ?? {}
    const isOpen = () => [...descriptorsOf(pid).values()].some((path) => path.endsWith('/s/left/file'))
    const { body } = await files.read('s/left', 'file')
    expect(isOpen()).toBe(true)
    Readable.from(body).destroy()
    await until(() => !isOpen(), 'the file is closed')
  })

  it('reads 256 files at once and no more', async () => {
    const { files } = lab.sandbox
    await files.write('s/many', 'file', pieces(Buffer.alloc(10)))
    const open = await Promise.all(Array.from({ length: 256 }, () => files.read('s/many', 'file')))
    await expect(files.read('s/many', 'file')).rejects.toMatchObject({ code: 'overloaded' })
    await expect(files.write('s/many', 'other', pieces(Buffer.of(1)))).rejects.toMatchObject({ code: 'overloaded' })
    for (const { body } of open) await body[Symbol.asyncIterator]().return?.()
    expect((await readAll('s/many', 'file')).length).toBe(10)
  })

  it('removes files and destroys workspaces', async () => {
    const { files } = lab.sandbox
    await files.write('s/gone', 'a', pieces(Buffer.of(1)))
    await files.write('s/gone', 'b', pieces(Buffer.of(2)))
    await files.remove('s/gone', 'a')
    expect((await files.list('s/gone', { prefix: '', after: '', limit: 10 })).map(({ path }) => path)).toEqual(['b'])
    await files.destroy('s/gone')
    expect(await files.list('s/gone', { prefix: '', after: '', limit: 10 })).toEqual([])
  })
})
