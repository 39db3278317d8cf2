import { expect, it } from 'vitest'
import { BrainError } from '../../../src/kernel/errors.ts'
import { newSessionId } from '../../../src/kernel/ids.ts'
import { Callbacks } from '../../../src/dispatch/environments/callbacks.ts'

const refusal = (code: 'cancelled' | 'invalid_request') => (): BrainError => new BrainError(code, 'over')

it('Callbacks say why they are closed, the last reason first, and forget the oldest of many', async () => {
  const callbacks = new Callbacks(() => 'http://127.0.0.1:1')
  const session = newSessionId()
  const open = (sequence: number) => callbacks.open(session, sequence, ['emit'], async () => '1')
  const use = (sequence: number, token: string): Promise<string> =>
    callbacks.call(session, sequence, { token, method: 'emit', input: null })
  const one = open(1)
  expect(await use(1, one.callback.token)).toBe('1')
  one.close(refusal('invalid_request'))
  await expect(use(1, one.callback.token)).rejects.toMatchObject({ code: 'invalid_request' })
  one.close(refusal('cancelled'))
  await expect(use(1, one.callback.token)).rejects.toMatchObject({ code: 'cancelled' })
  await expect(use(1, 'another')).rejects.toMatchObject({ code: 'not_found' })
  const two = open(2)
  two.close()
  await expect(use(2, two.callback.token)).rejects.toMatchObject({ code: 'not_found' })
  for (let sequence = 3; sequence < 3 + 4096; sequence++) open(sequence).close(refusal('cancelled'))
  await expect(use(1, one.callback.token)).rejects.toMatchObject({ code: 'not_found' })
})

it('Callbacks that are closed hold nothing of what they were for', async () => {
  const callbacks = new Callbacks(() => 'http://127.0.0.1:1')
  const finalized = Promise.withResolvers<void>()
  const registry = new FinalizationRegistry(() => finalized.resolve())
  const { close } = ((): { close: (reason: () => BrainError) => void } => {
    const large = { bytes: new Uint8Array(1024) }
    registry.register(large, 0)
    return callbacks.open(newSessionId(), 1, [], async () => String(large.bytes.length))
  })()
  close(refusal('cancelled'))
  let isHeld = true
  void finalized.promise.then(() => (isHeld = false))
  for (let round = 0; isHeld && round < 2000; round++) {
    Array.from({ length: 10_000 }, () => ({ round }))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(isHeld).toBe(false)
})
