import { expect, it } from 'vitest'
import { z } from 'zod'
import { listOf } from '../../../src/contract/list-of.ts'
import { parseModelRequest } from '../../../src/turn/model-request.ts'
import { CallNotes } from '../../../src/dispatch/call-log.ts'
import { parseCreateRequest } from '../../../src/session/create-request.ts'
import type { LoopHost } from '../../../src/turn/agentloop.ts'
import { TextHost } from '../../../src/turn/loops/text-host.ts'

const FIRST = /at (messages|transcript)?\[0\]/
const LONGEST = 200

/** As many wrong elements as a request of a few hundred kilobytes can hold. */
const wrong = (): number[] => Array.from({ length: 200_000 }, () => 0)
const wrongText = JSON.stringify(wrong())

function reasonOf(parse: () => unknown): string {
  try {
    parse()
  } catch (error) {
    return (error as Error).message
  }
  return expect.unreachable()
}

it('listOf() gives back what its elements become', () => {
  expect(listOf(z.string().default('none')).parse(['a', undefined])).toEqual(['a', 'none'])
})

it('listOf() says where the first wrong element is, and nothing of the others', () => {
  const parsed = listOf(listOf(z.string())).safeParse([['a'], ['b', 1, 2], 3])
  expect(parsed.error?.issues.map(({ path }) => path)).toEqual([[1, 1]])
})

it('listOf() refuses what is no list, and one that is too long, unread', () => {
  expect(listOf(z.string()).safeParse({}).error?.issues[0]?.message).toBe('must be a list')
  expect(
    listOf(z.string(), 1)
      .safeParse([1, 2])
      .error?.issues.map(({ message }) => message),
  ).toEqual(['must have at most 1 elements'])
})

it.each(['setTranscript', 'dispatch', 'model'] as const)(
  'a loop whose %s holds nothing but faults is told one',
  async (method) => {
    const host = new TextHost({} as LoopHost, new CallNotes())
    const text = method === 'model' ? `{"messages":${wrongText}}` : wrongText
    const refused = await host.call(method, [text]).catch((error: unknown) => error as Error)
    if (!(refused instanceof Error)) return expect.unreachable()
    expect(refused.message.length).toBeLessThan(LONGEST)
    if (method !== 'dispatch') expect(refused.message).toMatch(FIRST)
  },
)

it('a loop cannot dispatch more calls at once than could ever wait', async () => {
  const host = new TextHost({ dispatch: () => expect.unreachable() } as unknown as LoopHost, new CallNotes())
  const calls = Array.from({ length: 1001 }, (_, n) => ({ call_id: `c${n}`, name: 't', environment: 'e', input: 0 }))
  await expect(host.call('dispatch', [JSON.stringify(calls)])).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('at most 1000'),
  })
})

it('a tool or a client that sends nothing but faults is told one', () => {
  const tool = reasonOf(() => parseModelRequest(`{"messages":${wrongText}}`))
  const client = reasonOf(() =>
    parseCreateRequest({ model: { provider: 'p', name: 'm', api_key: 'k' }, transcript: wrong() }),
  )
  expect([tool, client]).toEqual([expect.stringMatching(FIRST), expect.stringMatching(FIRST)])
  expect(Math.max(tool.length, client.length)).toBeLessThan(LONGEST)
})

it('a client that names too many members is told so, and nothing of each', () => {
  const labels = Object.fromEntries(wrong().map((_, n) => [`no key ${n}`, 0]))
  const reason = reasonOf(() => parseCreateRequest({ model: { provider: 'p', name: 'm', api_key: 'k' }, labels }))
  expect(reason).toContain('at most 1024 members')
  expect(reason.length).toBeLessThan(LONGEST)
})
