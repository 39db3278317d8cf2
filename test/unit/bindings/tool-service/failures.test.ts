import { once } from 'node:events'
import { createServer as createSecureServer } from 'node:https'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Cause, type Phase, VERDICTS } from '../../../../src/bindings/tool-service/failures.ts'
import { toolServiceBinding } from '../../../../src/bindings/tool-service/tool-service-binding.ts'
import { BrainError } from '../../../../src/kernel/errors.ts'
import { parseProxyRules } from '../../../../src/kernel/net/proxy-rules.ts'
import {
  echoAt,
  headOf,
  HELLO,
  jsonAnswer,
  type Lab,
  type LabCall,
  openToolLab,
  RawService,
  RecordedServices,
  STREAM_HEAD,
} from '../../../support/tool-service-lab.ts'

let service: RawService
let lab: Lab
/** Calls that must go through a proxy first, which is the raw service: nothing of them leaves before it agrees. */
let tunnelled: Lab
beforeAll(async () => {
  service = await RawService.open(() => undefined)
  lab = openToolLab(echoAt(`${service.origin}/tools/echo`, { max_output_bytes: 1000 }))
  tunnelled = openToolLab(echoAt('https://tools.test/echo'), { proxies: parseProxyRules({ https: service.origin }) })
})
beforeEach(() => {
  service.requests.length = 0
})
afterAll(() => service[Symbol.asyncDispose]())

const answersWell = (): void => void (service.script = (socket) => socket.write(jsonAnswer(HELLO)))

/** What a call does at its deadline: Brain asks what left, and tells it to stop. */
async function atDeadline({ running, end }: LabCall): Promise<unknown> {
  const unsent = running.unsent?.()
  if (unsent !== undefined) return unsent
  await running.cancel('timeout', 9)
  return end
}

/** Brings a call into each phase. */
const UNTIL: Readonly<Record<Phase, (socket: Socket) => void>> = {
  connecting: () => undefined,
  waiting: () => undefined,
  body: (socket) =>
    socket.write(`${headOf('200 OK', ['Content-Type: application/json', 'Content-Length: 44'])}{"content":`),
  events: (socket) => socket.write(`${STREAM_HEAD}event: progress\ndata: 1\n\nevent: res`),
}

/** What ends it there. */
const CAUSES: Readonly<Record<Cause, (socket: Socket, call: LabCall) => unknown>> = {
  deadline: (_socket, call) => atDeadline(call),
  cancel: (_socket, call) => call.running.cancel('cancelled', 9),
  reset: (socket) => socket.resetAndDestroy(),
  close: (socket) => socket.end(),
  refusal: (socket) => socket.end(headOf('403 Forbidden', ['Content-Length: 0'])),
  fault: (socket) => socket.end('\u0000\u0001'),
}

const EXPECTED = {
  tool_unreachable: {
    type: 'failure',
    error: { code: 'tool_unreachable', message: expect.stringContaining('nothing was sent') },
  },
  tool_http_status: {
    type: 'failure',
    error: { code: 'tool_http_status', message: expect.stringContaining('HTTP 403') },
  },
  timeout: { type: 'stopped', reason: 'timeout' },
  cancelled: { type: 'stopped', reason: 'cancelled' },
  unknown: { type: 'unknown', message: expect.stringContaining('tool "echo"') },
} as const

describe('a call that fails (contract A15)', () => {
  const phases = Object.keys(VERDICTS) as Phase[]
  const table = phases.flatMap((phase) =>
    (Object.keys(VERDICTS[phase]) as Cause[])
      // In a body and in events these bytes are part of the answer, which is cut: close and reset tell of that.
      .filter((cause) => cause !== 'refusal' || phase === 'connecting' || phase === 'waiting')
      .map((cause) => [phase, cause, VERDICTS[phase][cause]] as const),
  )

  it.each(table)(
    'while %s for %s is %s; its socket is closed, and the next call works',
    async (phase, cause, verdict) => {
      const asked = Promise.withResolvers<Socket>()
      service.script = (socket) => {
        UNTIL[phase](socket)
        asked.resolve(socket)
      }
      const call = (phase === 'connecting' ? tunnelled : lab).call()
      const socket = await asked.promise
      if (phase === 'events') while (call.services.progressed.length === 0) await turn()
      const stopped = CAUSES[cause](socket, call)
      const end = cause === 'deadline' ? await stopped : await call.end
      expect(end).toMatchObject(EXPECTED[verdict])
      await service.closed()
      expect(service.requests).toHaveLength(1)
      answersWell()
      expect(await lab.call().end).toMatchObject({ status: 'ok' })
      lab.close()
      await service.closed()
    },
  )

  it('comes to what the documentation says', () => {
    const page = readFileSync(new URL('../../../../docs/distributed-tools.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| (deadline|cancel|reset|close|refusal|fault) \|(.*)\|$/gm)]
    const documented = rows.map(([, cause, cells = '']) => [
      cause,
      cells.split('|').map((cell) => cell.replace(/[ `]/g, '')),
    ])
    const causes = Object.keys(VERDICTS.connecting) as Cause[]
    expect(documented).toEqual(causes.map((cause) => [cause, phases.map((phase) => VERDICTS[phase][cause])]))
  })

  it('is stopped, socket and all, when it has ended for whatever reason', async () => {
    const asked = Promise.withResolvers<void>()
    service.script = () => asked.resolve()
    const { services, running } = lab.call()
    await asked.promise
    services.end()
    expect(await running.receipt).toEqual({ type: 'stopped', reason: 'cancelled' })
    await service.closed()
  })

  it('sends nothing when it is stopped before its connection stands', async () => {
    const { running } = lab.call()
    expect(running.unsent?.()).toMatchObject({ type: 'failure', error: { code: 'tool_unreachable' } })
    await running.receipt
    const other = lab.call()
    await other.running.cancel('cancelled', 9)
    expect(await other.end).toEqual({ type: 'stopped', reason: 'cancelled' })
    await service.closed()
    expect(service.requests).toHaveLength(0)
  })

  it('because nobody listens names the cause and not the place', async () => {
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const { port } = gone.address() as AddressInfo
    gone.close()
    const end = await openToolLab(echoAt(`http://127.0.0.1:${port}/x`)).call().end
    expect(end).toMatchObject({
      error: { message: 'Cannot reach tool "echo": no connection (ECONNREFUSED); nothing was sent', retryable: false },
    })
    const unknown = await openToolLab(echoAt('http://no-such-host.invalid/x')).call().end
    expect(unknown).toMatchObject({
      error: { message: expect.stringMatching(/^Cannot reach tool "echo": no connection \(E\w+\); nothing was sent$/) },
    })
  })

  it('because of TLS names the cause: a certificate that is not trusted or names somebody else, no TLS at all', async () => {
    const pem = (name: string): string =>
      readFileSync(new URL(`../../../fixtures/tls/localhost.${name}`, import.meta.url), 'utf8')
    let requests = 0
    const secure = createSecureServer({ key: pem('key'), cert: pem('crt') }, (_request, response) => {
      requests++
      response.setHeader('Content-Type', 'application/json').end(HELLO)
    }).listen(0, '127.0.0.1')
    await once(secure, 'listening')
    const { port } = secure.address() as AddressInfo
    const trusted = getCACertificates()
    const callAt = (host: string): Promise<unknown> => openToolLab(echoAt(`https://${host}:${port}/x`)).call().end
    const refused = (code: string): object => ({
      error: {
        code: 'tool_unreachable',
        message: `Cannot reach tool "echo": its TLS is not accepted (${code}); nothing was sent`,
      },
    })
    try {
      expect(await callAt('localhost')).toMatchObject(refused('DEPTH_ZERO_SELF_SIGNED_CERT'))
      setDefaultCACertificates([pem('crt')])
      expect(await callAt('127.0.0.1')).toMatchObject(refused('ERR_TLS_CERT_ALTNAME_INVALID'))
      expect(requests).toBe(0)
      expect(await callAt('localhost')).toMatchObject({ status: 'ok' })
      const plain = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1')
      await once(plain, 'listening')
      const { port: plainPort } = plain.address() as AddressInfo
      expect(await openToolLab(echoAt(`https://127.0.0.1:${plainPort}/x`)).call().end).toMatchObject({
        error: { code: 'tool_unreachable', message: expect.stringMatching(/its TLS is not accepted \(\w+\)/) },
      })
      plain.close()
    } finally {
      setDefaultCACertificates(trusted)
      secure.close()
      secure.closeAllConnections()
    }
  })

  it("because its binding is gone, is another tenant's, or has no usable token is sent to nobody", async () => {
    const tools = openToolLab(echoAt(service.origin, { tenants: ['other'], token_env: 'TOOL_KEY' }), {
      secret: () => 'two\nlines',
    })
    const unavailable = {
      type: 'failure',
      error: { code: 'tool_unavailable', message: expect.stringContaining('"echo"') },
    }
    expect(await tools.call().end).toMatchObject(unavailable)
    tools.services.set('echo', echoAt(service.origin, { token_env: 'TOOL_KEY' }))
    expect(await tools.call().end).toMatchObject(unavailable)
    tools.services.delete('echo')
    expect(await tools.call().end).toMatchObject(unavailable)
    expect(service.requests).toHaveLength(0)
  })
})

describe('limits of time (cases D-14)', () => {
  it('is 30 seconds to the response headers, also where timeout_seconds is 60: a timeout, perhaps done', async () => {
    const patient = openToolLab(echoAt(service.origin, { timeout_seconds: 60 }))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const asked = Promise.withResolvers<void>()
      service.script = () => asked.resolve()
      const { end } = patient.call({ deadlineInMs: 60_000 })
      const seen: unknown[] = []
      void end.then((ended) => seen.push(ended))
      await asked.promise
      vi.advanceTimersByTime(29_999)
      await turn()
      expect(seen).toEqual([])
      vi.advanceTimersByTime(2)
      expect(await end).toEqual({ type: 'stopped', reason: 'timeout' })
      expect(service.requests).toHaveLength(1)
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends a call without headers as timeout, perhaps done, and says why in its log', async () => {
    const hasty = openToolLab(echoAt(service.origin), { headersMs: 60 })
    service.script = () => undefined
    const { end, services } = hasty.call()
    expect(await end).toEqual({ type: 'stopped', reason: 'timeout' })
    expect(services.notes).toEqual([
      { type: 'warning', message: expect.stringContaining('no response headers within 0.06 seconds') },
    ])
    await service.closed()
  })

  it('ends a call without a connection as unreachable', async () => {
    const hasty = openToolLab(echoAt('https://tools.test/'), {
      headersMs: 60,
      proxies: parseProxyRules({ https: service.origin }),
    })
    expect(await hasty.call().end).toMatchObject({ type: 'failure', error: { code: 'tool_unreachable' } })
    await service.closed()
  })

  it('does not count what comes after the headers', async () => {
    const hasty = openToolLab(echoAt(service.origin), { headersMs: 60 })
    service.script = (socket) => {
      socket.write(STREAM_HEAD)
      setTimeout(() => socket.end(`event: result\ndata: ${HELLO}\n\n`), 120)
    }
    expect(await hasty.call().end).toMatchObject({ status: 'ok' })
  })

  it('has timeout_seconds of a binding as the bound of its calls', async () => {
    const binding = toolServiceBinding({
      services: () => new Map([['echo', echoAt('http://x.test', { timeout_seconds: 7 })]]),
      secret: () => undefined,
      proxies: parseProxyRules({}),
      inspect: () => ({ token: '', brainUrl: '', close: () => undefined }),
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    })
    expect([binding.timeoutMs?.('echo'), binding.timeoutMs?.('gone')]).toEqual([7000, undefined])
  })
})

describe('an answer', () => {
  const statuses = [
    ['201 Created', 'unknown'],
    ['204 No Content', 'unknown'],
    ['400 Bad Request', 'tool_http_status'],
    ['401 Unauthorized', 'tool_http_status'],
    ['429 Too Many Requests', 'tool_http_status'],
    ['500 Internal Server Error', 'unknown'],
    ['503 Service Unavailable', 'unknown'],
  ] as const
  it.each(statuses)('with status %s is %s, which names it', async (status, kind) => {
    service.script = (socket) => socket.write(jsonAnswer('{"content":"secret words"}', 'application/json', status))
    const end = await lab.call().end
    const message = expect.stringMatching(new RegExp(`HTTP ${status.slice(0, 3)}`))
    expect(end).toMatchObject(kind === 'unknown' ? { type: 'unknown', message } : { error: { code: kind, message } })
    expect(JSON.stringify(end)).not.toContain('secret words')
  })

  it.each([301, 302, 303, 307, 308])(
    'that redirects with %i is an error; nobody else is called (cases D-15)',
    async (status) => {
      await using other = await RawService.open((socket) => socket.write(jsonAnswer(HELLO)))
      const tools = openToolLab(echoAt(`${service.origin}/a`, { token_env: 'TOOL_KEY' }), { secret: () => 'opens-a' })
      for (const location of [`Location: ${other.origin}/b`, `Location: ${service.origin}/a`, 'X-No: location']) {
        service.script = (socket) => socket.write(headOf(`${status} Elsewhere`, [location, 'Content-Length: 0']))
        const end = await tools.call().end
        expect(JSON.stringify(end)).not.toContain('127.0.0.1')
        expect(end).toMatchObject({
          error: { code: 'tool_http_status', message: expect.stringContaining(`HTTP ${status}`) },
        })
      }
      expect([other.requests, other.connections]).toEqual([[], 0])
      const sent = service.requests.map(({ head }) =>
        head.split('\r\n').filter((line) => /^(POST|Authorization)/.test(line)),
      )
      expect(sent).toEqual(Array.from({ length: 3 }, () => ['POST /a HTTP/1.1', 'Authorization: Bearer opens-a']))
    },
  )

  it.each([
    ['another content type', jsonAnswer(HELLO, 'text/plain'), 'its content type is neither'],
    ['no content type', Buffer.from(`${headOf('200 OK', ['Content-Length: 2'])}{}`), 'its content type is neither'],
    [
      'a compressed body',
      Buffer.from(headOf('200 OK', ['Content-Type: application/json', 'Content-Encoding: gzip', 'Content-Length: 0'])),
      'compressed',
    ],
    [
      'another protocol',
      Buffer.from(headOf('101 Switching Protocols', ['Upgrade: x', 'Connection: upgrade'])),
      'another protocol',
    ],
    ['no HTTP', Buffer.from('SSH-2.0-x\r\n\r\n'), 'no HTTP that can be read (HPE_'],
    [
      'a head without end',
      Buffer.from(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`),
      'no HTTP that can be read (HPE_',
    ],
    [
      'broken JSON',
      jsonAnswer('{"content":[{"type":"text","text":"opens-a"'),
      'its result is no JSON that can be carried exactly',
    ],
    ['NaN', jsonAnswer('{"structured_content":NaN}'), 'its result is no JSON'],
    ['an inexact number', jsonAnswer('{"structured_content":9007199254740993}'), 'its result is no JSON'],
    ['a list', jsonAnswer('[]'), 'its result is no JSON object'],
    ['nothing in it', jsonAnswer('{}'), 'neither content nor structured_content'],
    ['only what is empty', jsonAnswer('{"content":[],"structured_content":null}'), 'neither content nor'],
    ['an error of nothing', jsonAnswer('{"is_error":true}'), 'neither content nor structured_content'],
    [
      'an unknown member',
      jsonAnswer('{"content":[],"isError":true}'),
      'its result has a member besides content, structured_content and is_error',
    ],
    [
      'is_error that is no boolean',
      jsonAnswer('{"content":[],"is_error":1}'),
      '"is_error" of its result is no boolean',
    ],
    ['content that is text', jsonAnswer('{"content":"hello"}'), '"content" of its result is no list'],
    [
      'an unknown type',
      jsonAnswer('{"content":[{"type":"image","text":"x"}]}'),
      '"content[0]" of its result is of another type than "text"',
    ],
    ['a part without text', jsonAnswer('{"content":[{"type":"text"}]}'), 'must have text in "text"'],
    ['a part with more', jsonAnswer('{"content":[{"type":"text","text":"x","a":1}]}'), 'and nothing else'],
  ])('that has %s fails, perhaps done, and says so', async (_, bytes, reason) => {
    service.script = (socket) => socket.end(bytes)
    const end = await lab.call().end
    expect(end).toMatchObject({ type: 'unknown', message: expect.stringContaining(reason) })
    expect(JSON.stringify(end)).not.toContain('opens-a')
  })

  it('may take max_output_bytes and not one more, whether it says so before or not', async () => {
    const exact = jsonAnswer(JSON.stringify({ structured_content: 'x'.repeat(1000 - 25) }))
    service.script = (socket) => socket.write(exact)
    expect(await lab.call().end).toMatchObject({ status: 'ok' })
    const tooMuch = JSON.stringify({ structured_content: 'x'.repeat(1000 - 24) })
    service.script = (socket) => socket.write(jsonAnswer(tooMuch))
    const refused = { type: 'unknown', message: expect.stringContaining('more than 1000 bytes (max_output_bytes)') }
    expect(await lab.call().end).toMatchObject(refused)
    // Without an end, and as much as the service likes: it is cut off as it comes.
    const cut = Promise.withResolvers<void>()
    service.script = (socket) => {
      socket.once('close', () => cut.resolve())
      socket.write(headOf('200 OK', ['Content-Type: application/json']))
      const more = (): void => void (socket.writable && socket.write('x'.repeat(65_536), more))
      more()
    }
    expect(await lab.call().end).toMatchObject(refused)
    await cut.promise
  })

  it.each([
    [
      { content: [{ type: 'text', text: '' }] },
      { status: 'ok', value: { content: [{ type: 'text', text: '' }] }, content: '' },
    ],
    [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
        structured_content: { status: 'error' },
      },
      { status: 'ok', value: { status: 'error' }, content: 'a\nb' },
    ],
    [
      { structured_content: { status: 'timeout' }, is_error: false },
      { status: 'ok', value: { status: 'timeout' } },
    ],
    [
      { structured_content: 0, content: [] },
      { status: 'ok', value: 0 },
    ],
    [
      { content: [{ type: 'text', text: 'no such file' }], is_error: true },
      {
        status: 'error',
        error: { code: 'tool_error', message: 'no such file', retryable: false },
        content: 'no such file',
      },
    ],
    [
      { structured_content: { status: 'ok', unknown_outcome: true }, is_error: true },
      {
        status: 'error',
        error: {
          code: 'tool_error',
          message: 'Tool "echo" answered with an error',
          retryable: false,
          details: { structured_content: { status: 'ok', unknown_outcome: true } },
        },
      },
    ],
  ])('with the result %j finishes its call', async (result, output) => {
    service.script = (socket) => socket.write(jsonAnswer(JSON.stringify(result)))
    expect(await lab.call().end).toEqual(output)
  })

  it('with a long error is cut to 4,096 characters of message', async () => {
    const text = 'x'.repeat(5000)
    const tools = openToolLab(echoAt(service.origin))
    service.script = (socket) =>
      socket.write(jsonAnswer(JSON.stringify({ content: [{ type: 'text', text }], is_error: true })))
    expect(await tools.call().end).toMatchObject({ error: { message: text.slice(0, 4096) }, content: text })
  })

  it('without the structure that its schema describes, or that Brain refuses, was done all the same', async () => {
    const tools = openToolLab(echoAt(service.origin, { output_schema: { type: 'object' } }))
    answersWell()
    const refusedAs = (code: string): object => ({
      type: 'failure',
      error: { code, details: { unknown_outcome: true } },
    })
    expect(await tools.call().end).toMatchObject(refusedAs('invalid_output'))
    const strict = new RecordedServices()
    strict.refusal = new BrainError('invalid_output', 'Cannot take it')
    expect(await lab.call({}, strict).end).toMatchObject(refusedAs('invalid_output'))
    const services = new RecordedServices()
    services.refusal = new BrainError('storage_unavailable', 'Cannot write')
    expect(await lab.call({}, services).end).toMatchObject({ type: 'unknown' })
    // An error needs no structure.
    service.script = (socket) => socket.write(jsonAnswer('{"content":[{"type":"text","text":"no"}],"is_error":true}'))
    expect(await tools.call().end).toMatchObject({ status: 'error', error: { code: 'tool_error' } })
  })
})
