import { describe, expect, it, vi } from 'vitest'
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
  })

  it('cancels a request that comes after its cancellation, once, and remembers no more than it may', async () => {
    const isCancelled = (signal: AbortSignal): Promise<boolean> => Promise.resolve(signal.aborted)
    const open = new OpenCalls(2)
    open.cancel(name)
    expect(await open.during(name, isCancelled)).toBe(true)
    expect(await open.during(name, isCancelled)).toBe(false)
    for (const request of [1, 2, 3]) open.cancel({ ...name, request })
    const each = [1, 2, 3].map((request) => open.during({ ...name, request }, isCancelled).catch(() => 'refused'))
    expect(await Promise.all(each)).toEqual([false, true, 'refused'])
    expect(await open.during({ ...name, request: 3 }, isCancelled)).toBe(true)
  })

  it('forgets after ten seconds what was cancelled without being there', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      const open = new OpenCalls()
      open.cancel(name)
      vi.advanceTimersByTime(10_001)
      expect(await open.during(name, (signal) => Promise.resolve(signal.aborted))).toBe(false)
    } finally {
      vi.useRealTimers()
    }
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
