import { describe, expect, it } from 'vitest'
import { OpenCalls } from '../../../src/mcp/open-calls.ts'

const name = { session: 'ses_1', client: 'one', request: 1 }
/** Work that goes on until it is cancelled. */
const untilCancelled = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve('cancelled')))

describe('OpenCalls', () => {
  it('cancels the request that is named, of the client and the session that are named', async () => {
    const open = new OpenCalls()
    const work = open.during(name, untilCancelled)
    let isOver = false
    void work.then(() => (isOver = true))
    for (const other of [{ client: 'two' }, { session: 'ses_2' }, { request: '1' }, { client: undefined }])
      open.cancel({ ...name, ...other })
    await Promise.resolve()
    expect(isOver).toBe(false)
    open.cancel(name)
    expect(await work).toBe('cancelled')
    open.cancel(name) // harmless
  })

  it('refuses an id that is in use, and takes it again after', async () => {
    const open = new OpenCalls()
    const work = open.during(name, untilCancelled)
    await expect(open.during(name, untilCancelled)).rejects.toMatchObject({ code: 'invalid_request' })
    open.cancel(name)
    await work
    expect(await open.during(name, () => Promise.resolve(1))).toBe(1)
  })

  it('takes as many as it may, named or not', async () => {
    const open = new OpenCalls(2)
    const held = Promise.withResolvers<number>()
    const anonymous = { ...name, client: undefined }
    const works = [open.during(anonymous, () => held.promise), open.during(anonymous, () => held.promise)]
    await expect(open.during(name, () => Promise.resolve(1))).rejects.toMatchObject({
      code: 'overloaded',
      retryable: true,
    })
    held.resolve(0)
    await Promise.all(works)
    expect(await open.during(name, () => Promise.resolve(1))).toBe(1)
  })
})
