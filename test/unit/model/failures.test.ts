import { createServer, type Server } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutAfter, hangAfter, ModelServer, pieces, refusal, stream } from '../../support/model-server.ts'
import { KEY, openLab, type Lab } from './provider-lab.ts'
import { WIRES } from './wires.ts'

let fake: ModelServer
/** Takes connections and says nothing. */
let silent: Server
beforeAll(async () => {
  fake = await ModelServer.open()
  silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
})
afterAll(async () => {
  silent.close()
  await fake[Symbol.asyncDispose]()
})

describe.each(WIRES)('a provider that speaks $dialect', (wire) => {
  const { dialect } = wire
  const lab = (limits: Parameters<typeof openLab>[2] = {}): Lab => openLab(fake.url, { dialect }, limits)

  it('that is not there fails for certain, and may be tried again', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    const failure = await openLab(`http://127.0.0.1:${port}/v1`, { dialect }).fail()
    expect(failure).toMatchObject({
      code: 'model_provider_failed',
      message: 'Cannot reach provider "test": no connection (ECONNREFUSED); nothing was sent',
      retryable: true,
      ambiguous: false,
    })
  })

  it('that closes the connection without an answer leaves it in doubt', async () => {
    fake.says((response) => void response.destroy())
    expect(await lab().fail()).toMatchObject({
      code: 'model_provider_failed',
      message: expect.stringContaining('it may have done the work'),
      retryable: false,
      ambiguous: true,
    })
    expect(fake.asked).toHaveLength(1)
  })

  it('that is lost in the middle of its answer leaves it in doubt, also when it hangs up in order', async () => {
    const [first, ...rest] = wire.answer('half')
    const isLast =
      dialect === 'anthropic_messages' ? rest.length - 2 : rest.length - (dialect === 'openai_chat' ? 2 : 1)
    for (const reply of [cutAfter(first), stream([first, ...rest.slice(0, isLast)])]) {
      fake.says(reply)
      expect(await lab().fail()).toMatchObject({
        code: 'model_provider_failed',
        message: expect.stringContaining('before its answer was complete'),
        ambiguous: true,
      })
      expect(fake.asked).toHaveLength(1)
    }
  })

  it.each([
    [400, { error: { message: 'bad model' } }, false, 'HTTP 400: bad model'],
    [401, { error: { message: 'no' } }, false, 'HTTP 401: no; the api_key of the session is not valid there'],
    [404, { detail: 'nothing here' }, false, 'HTTP 404: nothing here; check the name of the model'],
    [408, '', true, 'HTTP 408'],
    [429, { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }, true, 'HTTP 429: slow; wait'],
    [500, '<html>oops</html>', true, 'HTTP 500: <html>oops</html>'],
    [529, { message: 'busy' }, true, 'HTTP 529: busy'],
    [503, 'x'.repeat(100_000), true, 'HTTP 503: xxx'],
  ] as const)('that refuses with %i did not do the work', async (status, body, retryable, message) => {
    fake.says(refusal(status, body))
    const failure = await lab().fail()
    expect(failure).toMatchObject({ code: 'model_provider_failed', retryable, ambiguous: false })
    expect(failure.message).toContain(message)
    expect(failure.message.length).toBeLessThan(1200)
    expect(fake.asked).toHaveLength(1)
  })

  it('that redirects is not followed, so that the key goes nowhere else (cases D-15)', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      fake.says(refusal(status, '', { location: `${fake.url}/elsewhere` }))
      expect(await lab().fail()).toMatchObject({
        message: expect.stringMatching(/HTTP 30\d: redirects are not followed/),
        ambiguous: false,
        retryable: false,
      })
      expect(fake.asked).toHaveLength(1)
    }
  })

  it('that repeats the key never brings it into a message', async () => {
    const key = 'sk "quoted" key/+='
    const forms = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key), Buffer.from(key).toString('base64')]
    const said = forms.join(' | ')
    for (const reply of [
      refusal(401, { error: { message: said } }),
      refusal(401, `plain ${said} ${'x'.repeat(900)}${key}`),
      refusal(401, `${'x'.repeat(990)}${key}`),
      refusal(401, JSON.stringify({ message: `${'x'.repeat(990)}${key}` }).replaceAll('k', String.raw`\u006b`)),
      stream([wire.error(said)]),
    ]) {
      fake.says(reply)
      const failure = await lab().fail({}, { key })
      const all = `${failure.message} ${failure.stack} ${JSON.stringify(failure)} ${String(failure.cause)}`
      for (const form of [...forms, 'sk "q']) expect(all).not.toContain(form)
      expect(failure.message).toMatch(/\[api key\]|x{900}/)
    }
  })

  it('whose key no header can hold is not called', async () => {
    fake.says(refusal(500, ''))
    const failure = await lab().fail({}, { key: 'line\nbreak' })
    expect(failure).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('api_key') })
    expect(failure.message).not.toContain('break')
    expect(fake.asked).toHaveLength(0)
  })

  it.each([
    ['a page of a proxy', refusal(200, '<html>', { 'content-type': 'text/html' }), /it is "text\/html" and no stream/],
    ['bytes that are no UTF-8', pieces('data: {"type":"', new Uint8Array([0xff]), '"}\n\n'), /not valid UTF-8/],
    ['no JSON', pieces('data: {"type":\n\n'), /event of its stream is not JSON/],
    ['numbers that JSON does not have', pieces('data: {"type":NaN}\n\n'), /not JSON/],
    ['a number that would change', pieces('data: {"n":12345678901234567890}\n\n'), /carried exactly/],
    ['a depth without end', pieces(`data: ${'['.repeat(90_000)}\n\n`), /carried exactly/],
  ])('that sends %s is told so, for certain', async (_, reply, message) => {
    fake.says(reply)
    expect(await lab().fail()).toMatchObject({
      code: 'model_output_invalid',
      message: expect.stringMatching(message),
      ambiguous: false,
      retryable: false,
    })
  })

  it.each([
    [
      'one event',
      { modelFrameBytes: 1024 },
      /one event of its stream is larger than 1024.*BRAIN_MAX_MODEL_FRAME_BYTES/,
    ],
    ['its stream', { modelStreamBytes: 1024 }, /its stream is larger than 1024.*BRAIN_MAX_MODEL_STREAM_BYTES/],
    ['its answer', { modelOutputBytes: 1024 }, /its answer is larger than 1024.*BRAIN_MAX_MODEL_OUTPUT_BYTES/],
  ])('that sends too much (%s) is cut off with the limit named', async (_, limits, message) => {
    const before = fake.aborted
    fake.says((response) => {
      const [event] = wire.answer('x'.repeat(3000)).filter((part) => JSON.stringify(part).includes('xxx'))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (dialect === 'anthropic_messages')
        response.write(
          `data: ${JSON.stringify({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })}\n\n`,
        )
      response.write(`data: ${JSON.stringify(event)}\n\n`)
    })
    expect(await lab(limits).fail()).toMatchObject({
      code: 'model_output_invalid',
      message: expect.stringMatching(message),
      ambiguous: false,
    })
    await expect.poll(() => fake.aborted).toBe(before + 1)
  })

  it('that opens a page without end is left', async () => {
    const before = fake.aborted
    fake.says((response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.write('<html>')
    })
    expect(await lab().fail()).toMatchObject({ code: 'model_output_invalid' })
    await expect.poll(() => fake.aborted).toBe(before + 1)
  })

  it('whose pieces are long is shown in several frames, never inside a character', async () => {
    const text = 'aé😀'.repeat(200)
    fake.says(stream(wire.answer(text)))
    const within = lab({ modelDeltaBytes: 64 })
    await within.ask()
    const shown = within.frames.flatMap((frame) => (frame.type === 'assistant_delta' ? [frame.text] : []))
    expect(shown.length).toBeGreaterThan(20)
    expect(Math.max(...shown.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(64)
    expect(shown.every((piece) => piece.isWellFormed())).toBe(true)
    expect(shown.join('')).toBe(text)
  })

  it('that is cut inside characters is read exactly (cases D-13)', async () => {
    const bytes = Buffer.from(
      wire
        .answer('你好😀')
        .map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\r\n\r\n`)
        .join(''),
    )
    fake.says(
      pieces(...Array.from({ length: Math.ceil(bytes.length / 3) }, (_, i) => bytes.subarray(i * 3, i * 3 + 3))),
    )
    expect((await lab().ask()).message.content).toEqual([{ type: 'text', text: '你好😀' }])
  })

  it.each([
    ['""', ''],
    ['blanks', ' \n '],
    ['{}', '{}'],
    ['nothing', undefined],
  ])('that writes %s as arguments means {} (cases D-29)', async (_, written) => {
    fake.says(stream(wire.answer('', [{ id: 'a', ...(written === undefined ? {} : { arguments: written }) }])))
    expect((await lab().ask()).message.content).toEqual([{ type: 'tool_use', id: 'a', name: 'look', input: {} }])
  })

  it('that makes thirty calls at once, with text, is heard in their order (cases D-28)', async () => {
    const calls = Array.from({ length: 30 }, (_, n) => ({
      id: `c${n}`,
      name: n === 7 ? 'nobody' : 'look',
      arguments: `{"n":${n}}`,
    }))
    fake.says(stream(wire.answer('all of it', calls)))
    const { message, stop_reason } = await lab().ask()
    expect(stop_reason).toBe('tool_use')
    expect(message.content).toEqual([
      { type: 'text', text: 'all of it' },
      ...calls.map(({ id, name }, n) => ({ type: 'tool_use', id, name, input: { n } })),
    ])
  })

  it('that repeats ids or leaves them out gets distinct ones', async () => {
    const ids = ['a', 'a', '', 'call_2', '', 'a_1', 'a']
    fake.says(
      stream(
        wire.answer(
          '',
          ids.map((id) => ({ id, arguments: '{}' })),
        ),
      ),
    )
    const given = (await lab().ask()).message.content.map((block) => (block.type === 'tool_use' ? block.id : ''))
    expect(new Set(given).size).toBe(ids.length)
    expect(given).not.toContain('')
    expect(given[0]).toBe('a')
  })

  it('that makes calls without end is told so', async () => {
    fake.says(
      stream(
        wire.answer(
          '',
          Array.from({ length: 1025 }, (_, n) => ({ id: `c${n}`, arguments: '{}' })),
        ),
      ),
    )
    expect(await lab().fail()).toMatchObject({
      code: 'model_output_invalid',
      message: expect.stringContaining('1025 tool calls'),
    })
  })

  it.each([
    ['no JSON', '{"a":', /arguments of the call of "look": it is not usable JSON/],
    ['words', 'look there', /not usable JSON/],
    [
      'a number that would change (cases D-17)',
      '{"id":2512292042121000001}',
      /2512292042121000001 cannot be carried exactly/,
    ],
    ['a number without end', '{"id":1e400}', /1e400 is too large/],
    ['a depth without end', '['.repeat(3000), /nested deeper/],
  ])('that writes %s as arguments is told so, for certain', async (_, written, message) => {
    fake.says(stream(wire.answer('', [{ id: 'a', arguments: written }])))
    expect(await lab().fail()).toMatchObject({
      code: 'model_output_invalid',
      message: expect.stringMatching(message),
      ambiguous: false,
    })
  })

  it('whose limit of tokens ends a call is told so; one that came to its end counts', async () => {
    for (const written of ['{"a":', '']) {
      fake.says(
        stream(
          wire.cut('so', [
            { id: 'a', arguments: '{"n":1}' },
            { id: 'b', arguments: written },
          ]),
        ),
      )
      expect(await lab().fail()).toMatchObject({
        code: 'model_output_incomplete',
        message: expect.stringContaining('raise max_output_tokens'),
        ambiguous: false,
        response: { stop_reason: 'max_tokens' },
      })
    }
    fake.says(stream(wire.cut('so', [{ id: 'a', arguments: '{"n":1}' }])))
    expect(await lab().ask()).toMatchObject({
      stop_reason: 'max_tokens',
      message: { content: [{ text: 'so' }, { type: 'tool_use', input: { n: 1 } }] },
    })
  })

  it('that stays open after its last event is not waited for', async () => {
    fake.says(async (response, asked) => {
      await hangAfter(...wire.answer('ok').filter((event) => typeof event !== 'string'))(response, asked)
      if (dialect === 'openai_chat') response.write('data: [DONE]\n\n')
    })
    expect((await lab().ask()).message.content).toEqual([{ type: 'text', text: 'ok' }])
  })
})

it('a provider that does not end its refusal is not waited for', async () => {
  fake.says((response) => {
    response.writeHead(503, { 'content-type': 'application/json' })
    response.write('{"error":')
  })
  expect(await openLab(fake.url, { dialect: 'openai_responses' }).fail()).toMatchObject({
    message: expect.stringContaining('HTTP 503'),
    ambiguous: false,
  })
})

it('a provider that takes the connection and does not greet fails for certain within its time', async () => {
  const { port } = silent.address() as AddressInfo
  const url = `https://127.0.0.1:${port}/v1`
  const failure = await openLab(url, { dialect: 'openai_responses' }, { modelConnectSecs: 1 }).fail()
  expect(failure).toMatchObject({
    message: expect.stringContaining('no connection within 1 seconds (BRAIN_MAX_MODEL_CONNECT_SECS); nothing was sent'),
    retryable: true,
    ambiguous: false,
  })
  expect(failure.message).not.toContain(KEY)
})
