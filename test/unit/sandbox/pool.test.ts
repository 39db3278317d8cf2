import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { Call, type CallEnd } from '../../../src/sandbox/supervisor/call.ts'
import { BoxPool } from '../../../src/sandbox/supervisor/pool.ts'

const callOf = (id: number): Call =>
  new Call(
    {
      id,
      key: 'key',
      owner: 'owner',
      role: 'tool',
      component: 'component',
      mounts: [],
      secrets: {},
      network: [],
      invoke: Buffer.alloc(0),
      deadline: Number.POSITIVE_INFINITY,
    },
    defaultLimits,
    { files: () => expect.unreachable(), egress: () => expect.unreachable() },
  )

describe('BoxPool', () => {
  it('`place()` refuses one call and pauses, when this process cannot start another', () => {
    let tries = 0
    const refused: (readonly [id: number, end: CallEnd])[] = []
    const pool = new BoxPool(
      {
        limits: defaultLimits,
        isolation: 'tool',
        openBox: () => {
          tries++
          throw new Error('Cannot call socketpair: errno 24')
        },
      },
      {
        onHost: () => {},
        onEnd: () => {},
        onBegin: () => {},
        onRefused: (call, end) => refused.push([call.id, end]),
      },
    )
    pool.place(callOf(1))
    pool.place(callOf(2))
    expect(tries).toBe(1)
    const message = 'Cannot start a box: Cannot call socketpair: errno 24'
    expect(refused).toEqual([[1, { type: 'refused', code: 'environment_not_ready', message }]])
  })
})
