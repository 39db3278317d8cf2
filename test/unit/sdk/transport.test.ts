import { describe, expect, it } from 'vitest'
import { Transport, type Fetch } from '../../../src/sdk/client/transport.ts'

const transport = (fetch: Fetch): Transport =>
  new Transport({
    baseUrl: 'http://brain',
    token: 'secret',
    timeoutMs: undefined,
    fetch,
    closed: new AbortController().signal,
  })

/** What Node's fetch throws when an answer takes longer than it likes to wait. */
const impatience = (): never => {
  throw new TypeError('fetch failed', { cause: Object.assign(new Error('late'), { code: 'UND_ERR_HEADERS_TIMEOUT' }) })
}

describe('requests', () => {
  it('that are keyed ask for their answer again when fetch loses patience; others fail', async () => {
    const keys: (string | null)[] = []
    const slow: Fetch = async (_url, init) => {
      keys.push(new Headers(init?.headers).get('idempotency-key'))
      return keys.length < 3 ? impatience() : Response.json({ done: true })
    }
    expect(await transport(slow).json('POST', '/v1/x', { body: {}, key: 'k' })).toEqual({ done: true })
    expect(keys).toEqual(['k', 'k', 'k'])
    await expect(transport(async () => impatience()).json('GET', '/v1/x')).rejects.toThrow('fetch failed')
  })

  it('send JSON or bytes, with the token or another one', async () => {
    const seen: [string | null, string | null, unknown][] = []
    const one = transport(async (_url, init) => {
      const headers = new Headers(init?.headers)
      seen.push([headers.get('authorization'), headers.get('content-type'), init?.body])
      return new Response(null, { status: 204 })
    })
    const bytes = new Uint8Array([1])
    expect(await one.json('POST', '/', { body: { a: 1 } })).toBeUndefined()
    await one.json('POST', '/', { body: bytes, token: 'other' })
    await one.json('DELETE', '/')
    expect(seen).toEqual([
      ['Bearer secret', 'application/json', '{"a":1}'],
      ['Bearer other', 'application/octet-stream', bytes],
      ['Bearer secret', null, undefined],
    ])
  })

  it.each([
    ['no JSON', new Response('<html>', { status: 502 }), { status: 502, code: 'http_error', retryable: false }],
    ['no body', new Response(null, { status: 500 }), { status: 500, code: 'http_error' }],
    [
      'an error',
      Response.json({ code: 'overloaded', message: 'Busy', retryable: true, details: { a: 1 } }, { status: 503 }),
      { status: 503, code: 'overloaded', message: 'Busy', retryable: true, details: { a: 1 } },
    ],
    ['200 that is no JSON', new Response('<html>'), { status: 200, code: 'http_error' }],
  ])('answered with %s reject with a BrainError', async (_name, response, expected) => {
    await expect(transport(async () => response).json('GET', '/')).rejects.toMatchObject({
      name: 'BrainError',
      ...expected,
    })
  })
})
