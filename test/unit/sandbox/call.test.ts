import { expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { Call } from '../../../src/sandbox/supervisor/call.ts'

const whose = { id: 1, key: 'key', owner: 'owner', role: 'tool', component: 'component' } as const
const placed = {
  ...whose,
  mounts: [],
  secrets: {},
  network: [],
  invoke: Buffer.alloc(0),
  deadline: Number.POSITIVE_INFINITY,
}

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
  const call = new Call(
    placed,
    { ...defaultLimits, guestCpuSecs: 0.02 },
    { files: () => slow, egress: () => expect.unreachable() },
  )
  expect(call.exhausted()).toBeUndefined()
  call.answerFiles(Buffer.alloc(0))
  call.answerFiles(Buffer.alloc(0))
  expect(call.exhausted()).toMatchObject({ type: 'trapped', code: 'compute_limit' })
})

it('`Call.exhausted()` counts the time that its requests took, for the session whose they are', async () => {
  const egress = { workMs: 15, answer: () => Promise.resolve([]), close: () => {} }
  const owners: string[] = []
  const brokers = {
    files: () => expect.unreachable(),
    egress: (_: unknown, owner: string) => (owners.push(owner), egress),
  }
  const call = new Call(placed, { ...defaultLimits, guestCpuSecs: 0.02 }, brokers)
  await call.answerEgress(Buffer.alloc(0))
  expect(call.exhausted()).toBeUndefined()
  egress.workMs = 21
  expect(call.exhausted()).toMatchObject({ type: 'trapped', code: 'compute_limit' })
  expect(owners).toEqual(['owner'])
})
