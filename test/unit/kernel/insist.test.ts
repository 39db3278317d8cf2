import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { insist } from '../../../src/kernel/insist.ts'

describe('insist', () => {
  beforeEach(() => vi.useFakeTimers())
  afterEach(() => vi.useRealTimers())

  it('tries again every second while the work fails with a retryable error', async () => {
    const work = vi.fn<() => Promise<string>>().mockResolvedValue('done')
    for (let i = 0; i < 3; i++) work.mockRejectedValueOnce(new BrainError('storage_unavailable', 'the disk is full'))
    const done = insist(work)
    await vi.advanceTimersByTimeAsync(2999)
    expect(work).toHaveBeenCalledTimes(3)
    await vi.advanceTimersByTimeAsync(1)
    expect(await done).toBe('done')
    expect(work).toHaveBeenCalledTimes(4)
  })

  it.each([new BrainError('conflict', 'the key is taken'), new Error('a defect')])('passes on %s', async (error) => {
    const work = vi.fn<() => Promise<void>>().mockRejectedValue(error)
    await expect(insist(work)).rejects.toBe(error)
    expect(work).toHaveBeenCalledTimes(1)
  })
})
