import { expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { Call } from '../../../src/sandbox/supervisor/call.ts'

it('`Call.exhausted()` counts the time that its files took', () => {
  const slow = {
    ops: 0,
    exhausted: false,
    close: () => {},
    answer: () => {
      for (const end = performance.now() + 15; performance.now() < end;);
      return []
    },
  }
  const order = { id: 1, key: 'key', owner: 'owner', component: 'component', mounts: [], secrets: {}, network: [] }
  const call = new Call(
    { ...order, invoke: Buffer.alloc(0), deadline: Number.POSITIVE_INFINITY },
    { ...defaultLimits, guestCpuSecs: 0.02 },
    { files: () => slow, egress: () => expect.unreachable() },
  )
  expect(call.exhausted()).toBeUndefined()
  call.answerFiles(Buffer.alloc(0))
  call.answerFiles(Buffer.alloc(0))
  expect(call.exhausted()).toMatchObject({ type: 'trapped', code: 'compute_limit' })
})
