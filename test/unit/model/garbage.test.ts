import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../src/kernel/json.ts'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { messageSchema } from '../../../src/contract/message-schema.ts'
import { ModelFailure } from '../../../src/model/model-provider.ts'
import { MessagesAnswer } from '../../../src/model/remote/messages/messages-answer.ts'
import { ResponsesAnswer } from '../../../src/model/remote/responses/responses-answer.ts'
import { LiveOutput } from '../../../src/model/remote/wire/live-output.ts'
import { ModelServer, pieces, stream } from '../../support/model-server.ts'
import { openLab } from './provider-lab.ts'
import { WIRES } from './wires.ts'

let fake: ModelServer
beforeAll(async () => {
  fake = await ModelServer.open()
})
afterAll(() => fake[Symbol.asyncDispose]())

const calls = [
  { id: 'a', arguments: '{"n":1}' },
  { id: 'a', arguments: '' },
]

/** A value that is of the right kind somewhere, or anywhere else. */
const anyValue = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<Json>('message', 'function_call', 'text', 'tool_use', 'thinking', 'max_tokens', 0, 1, -1, 1e9, ''),
) as fc.Arbitrary<Json>

/** Changes members of a value, at any depth: each with another value, or none. */
const broken = (value: Json): fc.Arbitrary<Json> => {
  const kept = Array.isArray(value)
    ? fc.tuple(...(value as Json[]).map(broken))
    : typeof value === 'object' && value !== null
      ? fc.record(Object.fromEntries(Object.entries(value).map(([name, member]) => [name, broken(member)])), {
          requiredKeys: [],
        })
      : fc.constant(value)
  return fc.oneof({ arbitrary: kept as fc.Arbitrary<Json>, weight: 12 }, { arbitrary: anyValue, weight: 1 })
}

/** An answer whose events are broken, and come in another order, twice or not at all. */
const brokenAnswer = (events: readonly unknown[]): fc.Arbitrary<Json[]> =>
  fc
    .tuple(
      fc.array(fc.nat(events.length - 1), { maxLength: 4 }),
      fc.tuple(...events.map((event) => broken(event as Json))),
    )
    .map(([again, all]) => [...again.map((at) => all[at]!), ...all])

const answers = {
  openai_responses: (live: LiveOutput) => new ResponsesAnswer('test', live),
  anthropic_messages: (live: LiveOutput) => new MessagesAnswer('test', live),
}

describe.each(WIRES.filter(({ dialect }) => dialect !== 'openai_chat'))('a broken answer in $dialect', (wire) => {
  it('is a message that a transcript takes, or a failure with a code, and nothing else', () => {
    const open = answers[wire.dialect as keyof typeof answers]
    let usable = 0
    fc.assert(
      fc.property(brokenAnswer(wire.answer('some text', calls)), (events) => {
        const answer = open(new LiveOutput('test', defaultLimits, () => undefined))
        try {
          for (const event of events)
            if (typeof event === 'object' && event !== null && answer.take(event as JsonObject)) break
          const { message, usage } = answer.result()
          expect(messageSchema.safeParse(message).error).toBeUndefined()
          expect(Object.values(usage).every((count) => count !== undefined)).toBe(true)
          usable++
        } catch (error) {
          if (!(error instanceof ModelFailure)) throw error
          expect(error.code).toMatch(/^model_/)
        }
      }),
      { numRuns: 1500 },
    )
    expect(usable).toBeGreaterThan(100)
  })
})

describe.each(WIRES)('a provider that speaks $dialect and sends garbage', (wire) => {
  const outcome = async (): Promise<string> => {
    const asked = await openLab(fake.url, { dialect: wire.dialect })
      .ask()
      .catch((error: unknown) => error)
    if (asked instanceof ModelFailure) return asked.code
    if (asked instanceof Error) throw asked
    return 'answered'
  }

  it('comes to an answer or a failure of the model, whatever the events', async () => {
    await fc.assert(
      fc.asyncProperty(brokenAnswer(wire.answer('some text', calls)), async (events) => {
        fake.says(stream(events))
        expect(await outcome()).toMatch(/^model_|^answered$/)
      }),
      { numRuns: 60 },
    )
  })

  it('comes to an answer or a failure of the model, whatever the bytes', async () => {
    const whole = Buffer.from(
      wire
        .answer('some text', calls)
        .map((event) => `data: ${JSON.stringify(event)}\n\n`)
        .join(''),
    )
    const edits = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(edits, fc.nat(whole.length), async (changed, end) => {
        const bytes = Buffer.from(whole)
        for (const [at, byte] of changed) bytes[at] = byte
        fake.says(pieces(bytes.subarray(0, end)))
        expect(await outcome()).toMatch(/^model_|^answered$/)
      }),
      { numRuns: 60 },
    )
  })
})
