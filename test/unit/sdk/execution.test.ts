import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BrainError } from '../../../src/sdk/brain-error.ts'
import { Execution } from '../../../src/sdk/host/execution.ts'
import { hostServices } from '../../../src/sdk/host/host-services.ts'

type Posted = { readonly route: string; readonly body: any }
type Answer = (posted: Posted) => unknown

/** One call of `run`, with a server that answers as it is told. */
function callOf(
  run: (input: any, ctx: any) => unknown,
  {
    deadline,
    answer = () => ({ sequence: 9 }),
    input = z.any(),
  }: { deadline?: number; answer?: Answer; input?: z.ZodType } = {},
) {
  const posted: Posted[] = []
  const over = Promise.withResolvers<void>()
  const call = { session_id: 'ses_1', sequence: 4, input: { a: 1 } }
  const execution = new Execution(
    { ...call, ...(deadline !== undefined && { deadline_at_ms: deadline }) },
    { type: 'function', run, input, output: undefined, options: {} },
    hostServices(call, async (route, body) => {
      posted.push({ route, body })
      return (await answer({ route, body })) as never
    }),
    () => over.resolve(),
  )
  const updates = () => posted.map(({ body }) => body.update ?? body.event_type)
  return { execution, posted, updates, over: over.promise }
}

const lost = (): never => {
  throw new TypeError('fetch failed')
}

describe('a call', () => {
  it('that is over already runs neither schema nor function', async () => {
    let ran = 0
    const count = (): boolean => ++ran > 0
    const { execution, updates } = callOf(count, { deadline: Date.now() - 1, input: z.any().refine(count) })
    await execution.run()
    expect(updates()).toEqual([{ type: 'finish', outcome: { status: 'timeout' } }])
    expect(ran).toBe(0)
  })

  it.each([undefined, Date.now() + 2 ** 33])(
    'with the deadline %s is not cut short by a timer of 32 bits',
    async (deadline) => {
      const { execution, updates, over } = callOf(
        async (_, ctx) => {
          await sleep(20)
          return ctx.finish(ctx.deadline?.getTime() ?? null)
        },
        { ...(deadline !== undefined && { deadline }) },
      )
      await execution.run()
      await over
      expect(updates()).toEqual([{ type: 'finish', outcome: { status: 'ok', value: deadline ?? null } }])
    },
  )

  it('whose finish got lost on its way is not finished again', async () => {
    const later: unknown[] = []
    const { execution, updates } = callOf(
      async (_, ctx) => {
        later.push(await ctx.finish(1).catch((error: unknown) => error))
        later.push(await ctx.finish(2).catch((error: unknown) => error))
        return 'more'
      },
      { answer: lost },
    )
    await execution.run()
    expect(updates()).toEqual([{ type: 'finish', outcome: { status: 'ok', value: 1 } }])
    expect(later).toMatchObject([{ message: 'fetch failed' }, { code: 'invalid_request' }])
  })

  it('whose value is refused may still finish without one', async () => {
    const { execution, updates } = callOf(
      async (_, ctx) => {
        await ctx.finish('large').catch(() => {})
        return ctx.finish()
      },
      {
        answer: ({ body }) => {
          if (body.update.outcome !== undefined) throw new BrainError(400, 'emit_limit', 'Too much')
          return { sequence: 5 }
        },
      },
    )
    await execution.run()
    expect(updates()).toEqual([{ type: 'finish', outcome: { status: 'ok', value: 'large' } }, { type: 'finish' }])
  })

  it('keeps the first reason why nobody waits for it', async () => {
    let reason: DOMException | undefined
    const { execution, updates, over } = callOf((_, ctx) => {
      ctx.signal.addEventListener('abort', () => (reason = ctx.signal.reason))
      return new Promise(() => {})
    })
    const running = execution.run()
    await sleep(5)
    for (const cause of ['cancelled', 'timeout', 'unknown', 'closed'] as const) execution.interrupt(cause)
    await over
    await running
    expect(reason?.message).toBe('The call was cancelled')
    expect(updates()).toEqual([{ type: 'finish', outcome: { status: 'cancelled' } }])
  })

  it('says nothing more once the client is closed', async () => {
    const { execution, updates } = callOf(() => new Promise(() => {}))
    const running = execution.run()
    await sleep(5)
    execution.interrupt('closed')
    await running
    expect(updates()).toEqual([])
  })

  it('updates one after the other, in the order in which they were asked for', async () => {
    let open = 0
    const { execution, updates } = callOf(
      (_, ctx) => {
        for (let i = 0; i < 20; i++) void (i % 2 === 0 ? ctx.emit(`event${i}`, i) : ctx.emitResult(i))
        return 'returned'
      },
      {
        answer: async () => {
          expect(++open).toBe(1)
          await sleep(Math.random() * 3)
          open--
          return { sequence: 1 }
        },
      },
    )
    await execution.run()
    const order = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? `event${i}` : i))
    expect(updates().map((update) => update.outcome?.value ?? update)).toEqual([...order, 'returned'])
    expect(updates().at(-1)).toMatchObject({ type: 'returned' })
  })

  it('ends its model calls with itself', async () => {
    const aborted = Promise.withResolvers<unknown>()
    const run = async (_: unknown, ctx: any) => {
      const asking = ctx.model({ messages: [] })
      await ctx.finish('enough')
      aborted.resolve(await asking.catch((error: unknown) => error))
    }
    const execution = new Execution(
      { session_id: 'ses_1', sequence: 4, input: {} },
      { type: 'function', run, input: z.any(), output: undefined, options: {} },
      hostServices({ session_id: 'ses_1', sequence: 4 }, (route, _body, signal) =>
        route === 'results'
          ? Promise.resolve({ sequence: 1 })
          : new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error))),
      ),
      () => {},
    )
    await execution.run()
    expect(await aborted.promise).toMatchObject({ name: 'BrainError', code: 'invalid_request' })
  })

  it('that failed is ended, also when the server cannot take that at first', async () => {
    let refusals = 2
    const { execution, updates, over } = callOf(
      () => {
        throw new Error('no')
      },
      {
        answer: () => {
          if (refusals-- > 0) throw new BrainError(503, 'storage_unavailable', 'Cannot write', { retryable: true })
          return { sequence: 5 }
        },
      },
    )
    await execution.run()
    await over
    expect(updates()).toHaveLength(3)
    expect(updates().at(-1)).toMatchObject({
      type: 'finish',
      outcome: { error: { code: 'tool_error', message: 'no' } },
    })
  })

  it('that cannot be ended is told no more once nobody waits for it', async () => {
    const { execution, updates } = callOf(
      () => {
        throw new Error('no')
      },
      {
        answer: () => {
          throw new BrainError(503, 'overloaded', 'Too much', { retryable: true })
        },
      },
    )
    const running = execution.run()
    await sleep(50)
    execution.interrupt('closed')
    await running
    expect(updates()).toHaveLength(1)
  })

  it.each([Object.create(null), Symbol('odd'), Object.assign(new Error('x'), { message: { odd: true } }), undefined])(
    'ends with tool_error whatever its function throws (%#)',
    async (thrown) => {
      const { execution, updates } = callOf(() => {
        throw thrown
      })
      await execution.run()
      expect(updates()).toMatchObject([
        { type: 'finish', outcome: { status: 'error', error: { code: 'tool_error', message: expect.any(String) } } },
      ])
    },
  )

  it('asks the model as often at once as the server takes, and lets the rest wait', async () => {
    let [open, most] = [0, 0]
    const { execution, posted } = callOf(
      async (_, ctx) => {
        await Promise.all(Array.from({ length: 30 }, () => ctx.model({ messages: [] })))
        for (let i = 0; i < 20; i++) ctx.model({ messages: [] })
        return ctx.finish()
      },
      {
        answer: async ({ route }) => {
          if (route !== 'model') return { sequence: 1 }
          most = Math.max(most, ++open)
          await sleep(2)
          open--
          return {}
        },
      },
    )
    await execution.run()
    await sleep(20)
    expect(most).toBe(8)
    // Those that wait when the call ends are never sent.
    expect(posted.filter(({ route }) => route === 'model')).toHaveLength(38)
  })

  it.each([
    [new TypeError('fetch failed'), { status: 'unknown' }],
    [new BrainError(502, 'http_error', 'Bad gateway'), { status: 'unknown' }],
    [new BrainError(400, 'emit_limit', 'Too much'), { status: 'error', error: { code: 'emit_limit' } }],
  ])('whose return got lost is in doubt, and has failed where it was refused (%#)', async (error, outcome) => {
    const { execution, updates } = callOf(() => 'value', {
      answer: ({ body }) => {
        if (body.update.type === 'returned') throw error
        return { sequence: 5 }
      },
    })
    await execution.run()
    expect(updates()).toMatchObject([{ type: 'returned' }, { type: 'finish', outcome }])
  })

  it('publishes a value as it was when it was given, awaited or not', async () => {
    const { execution, updates } = callOf(async (_, ctx) => {
      const list = [1]
      void ctx.emitResult(list)
      list.push(2)
      void ctx.emitResult(list)
      list.push(3)
      const finishing = ctx.finish(list)
      list.push(4)
      await finishing
    })
    await execution.run()
    expect(updates().map(({ outcome }) => outcome.value)).toEqual([[1], [1, 2], [1, 2, 3]])
  })

  it('that nobody awaits does not end the process when something in it fails', async () => {
    const unhandled: unknown[] = []
    const hear = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', hear)
    const { execution } = callOf(
      (_, ctx) => {
        for (const one of [
          () => ctx.emit('x', 1),
          () => ctx.emitResult(1n),
          () => ctx.model({}),
          () => ctx.environments.list(),
          () => ctx.finish(3),
        ])
          void one()
      },
      { answer: lost },
    )
    await execution.run()
    await sleep(20)
    process.off('unhandledRejection', hear)
    expect(unhandled).toEqual([])
  })
})
