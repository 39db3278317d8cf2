import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { oneAtATime } from '../../../src/authoring/build/python/one-at-a-time.ts'

describe('work that is done one at a time', () => {
  let folder: string
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'brain-lock-'))))
  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('waits for whoever is at it, also when that fails', async () => {
    let atWork = 0
    const work = async (): Promise<number> => {
      expect(++atWork).toBe(1)
      await sleep(5)
      atWork--
      throw new Error('deliberate')
    }
    const all = await Promise.allSettled([1, 2].map(() => oneAtATime(join(folder, 'lock'), work)))
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await readdir(folder)).toEqual([])
  })

  it('does not wait for a process that is gone', async () => {
    const gone = spawnSync(process.execPath, ['--version'])
    await writeFile(join(folder, 'lock'), String(gone.pid))
    expect(await oneAtATime(join(folder, 'lock'), () => Promise.resolve('done'))).toBe('done')
  })

  it('stops waiting when it is told to', async () => {
    await writeFile(join(folder, 'lock'), String(process.pid))
    const waiting = oneAtATime(
      join(folder, 'lock'),
      () => Promise.resolve('done'),
      AbortSignal.abort(new Error('enough')),
    )
    await expect(waiting).rejects.toThrow('enough')
    expect(await readdir(folder)).toEqual(['lock'])
  })
})
