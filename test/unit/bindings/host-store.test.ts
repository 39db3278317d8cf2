import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openHostStore } from '../../../src/bindings/host/host-store.ts'
import { SharedWrite } from '../../../src/bindings/host/shared-write.ts'
import { localTenant, newHostId, newSessionId } from '../../../src/kernel/ids.ts'

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'brain-hosts-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const host = { id: newHostId(), tenant: localTenant, tokenDigest: Buffer.alloc(32, 7), sessions: [newSessionId()] }

describe('openHostStore()', () => {
  it('finds what was kept, and sweeps what was not written whole', async () => {
    const store = await openHostStore(directory)
    const other = { ...host, id: newHostId() }
    await store.write({ ...host, sessions: [] })
    await store.write(host)
    await store.write(other)
    await store.remove(other.id)
    writeFileSync(join(directory, '.half'), '{"ten')
    expect((await openHostStore(directory)).kept).toEqual([host])
    expect(readdirSync(directory)).toEqual([`${host.id}.json`])
    expect(statSync(join(directory, `${host.id}.json`)).mode & 0o777).toBe(0o600)
  })

  it('refuses a registration that is damaged, naming its file and what to do', async () => {
    const path = join(directory, `${host.id}.json`)
    for (const text of ['', '{"tenant":"local"}', '{"tenant":"local","token_sha256":"x","sessions":[]}']) {
      writeFileSync(path, text)
      await expect(openHostStore(directory)).rejects.toMatchObject({
        code: 'storage_unavailable',
        message: expect.stringMatching(new RegExp(`${host.id}.*register the application anew`, 's')),
      })
    }
  })

  it('says so when nothing can be written', async () => {
    const store = await openHostStore(join(directory, 'hosts'))
    rmSync(join(directory, 'hosts'), { recursive: true })
    await expect(store.write(host)).rejects.toMatchObject({ code: 'storage_unavailable', retryable: true })
  })
})

describe('SharedWrite', () => {
  it('writes once more for all who came during a write, with what they had brought', async () => {
    const value: string[] = []
    const written: string[] = []
    const going = Promise.withResolvers<void>()
    const write = new SharedWrite(async () => {
      written.push(value.join(''))
      if (written.length === 1) await going.promise
    })
    const run = (text: string): Promise<void> => {
      value.push(text)
      return write.run()
    }
    const first = run('a')
    await Promise.resolve()
    const others = [run('b'), run('c')]
    going.resolve()
    await Promise.all([first, ...others])
    expect(written).toEqual(['a', 'abc'])
  })

  it('goes on after a write that failed', async () => {
    let count = 0
    const write = new SharedWrite(async () => {
      if (count++ === 0) throw new Error('full')
    })
    await expect(write.run()).rejects.toThrow('full')
    await write.run()
    expect(count).toBe(2)
  })
})
