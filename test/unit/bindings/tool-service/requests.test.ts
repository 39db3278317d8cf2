import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ToolServiceBindingParts } from '../../../../src/bindings/tool-service/tool-service-binding.ts'
import { parseProxyRules } from '../../../../src/kernel/net/proxy-rules.ts'
import {
  echoAt,
  headOf,
  HELLO,
  jsonAnswer,
  openToolLab,
  RawService,
  type RawRequest,
} from '../../../support/tool-service-lab.ts'

let service: RawService
beforeAll(async () => {
  service = await RawService.open(() => undefined)
})
beforeEach(() => {
  service.requests.length = 0
  service.script = (socket) => socket.write(jsonAnswer(HELLO))
})
afterAll(() => service[Symbol.asyncDispose]())

const headersOf = ({ head }: RawRequest): Record<string, string> =>
  Object.fromEntries(
    head
      .split('\r\n')
      .slice(1)
      .map((line) => [line.split(': ')[0]?.toLowerCase() ?? '', line.split(': ').slice(1).join(': ')]),
  )

describe('a request (seed: Handle a tool call)', () => {
  it('is one POST with the identity of the session beside the arguments, and these headers', async () => {
    const tools = openToolLab(echoAt(`${service.origin}/tools/echo?v=1`, { token_env: 'BRAIN_TOOLS_KEY' }), {
      secret: (name) => (name === 'BRAIN_TOOLS_KEY' ? 'key-1' : undefined),
    })
    const { call, end } = tools.call({ input: '{"text":"é","id":1.0,"tenant_id":"mine"}' })
    await end
    const [request] = service.requests
    expect(request?.head.split('\r\n')[0]).toBe('POST /tools/echo?v=1 HTTP/1.1')
    expect(headersOf(request!)).toEqual({
      host: `127.0.0.1:${service.port}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer key-1',
      'content-length': String(Buffer.byteLength(request!.body)),
      connection: 'keep-alive',
    })
    expect(JSON.parse(request!.body)).toEqual({
      tenant_id: 'local',
      session_id: call.session,
      call_id: `call_${call.session.slice(4)}_1`,
      arguments: { text: 'é', id: 1, tenant_id: 'mine' },
    })
    // The arguments go out as they were checked, number for number.
    expect(request!.body).toContain('"arguments":{"text":"é","id":1.0,"tenant_id":"mine"}}')
  })

  it('has no token where the binding names none, and no trace where the call belongs to none', async () => {
    await openToolLab(echoAt(service.origin)).call().end
    expect(headersOf(service.requests[0]!)).not.toHaveProperty('authorization')
    expect(headersOf(service.requests[0]!)).not.toHaveProperty('traceparent')
  })

  it('continues a trace with a span of its own', async () => {
    const tools = openToolLab(echoAt(service.origin))
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const spans: string[] = []
    for (const version of ['00', '00', 'cc']) {
      const more = version === 'cc' ? '-more' : ''
      await tools.call({ traceparent: `${version}-${trace}-00f067aa0ba902b7-01${more}` }).end
      const sent = /^00-4bf92f3577b34da6a3ce929d0e0e4736-([0-9a-f]{16})-01$/.exec(
        headersOf(service.requests.at(-1)!)['traceparent'] ?? '',
      )
      spans.push(sent?.[1] ?? 'none')
    }
    expect(new Set([...spans, '00f067aa0ba902b7', '0'.repeat(16)]).size).toBe(5)
    for (const none of [
      '',
      'ff-' + trace + '-00f067aa0ba902b7-01',
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `00-${trace}-x\r\ny: z`,
    ]) {
      await tools.call({ traceparent: none }).end
      expect(headersOf(service.requests.at(-1)!)).not.toHaveProperty('traceparent')
    }
  })

  it('has a token to inspect the session where the binding says so, until the call has ended', async () => {
    const open = new Set<string>()
    const inspect: ToolServiceBindingParts['inspect'] = ({ sequence }) => {
      const token = `look-${sequence}`
      open.add(token)
      return { token, brainUrl: 'https://brain.test', close: () => open.delete(token) }
    }
    const tools = openToolLab(echoAt(service.origin, { inspect_session: true }), { inspect })
    const during: string[][] = []
    service.script = (socket) => {
      during.push([...open])
      socket.write(jsonAnswer(HELLO))
    }
    await tools.call().end
    await new Promise(setImmediate)
    expect(JSON.parse(service.requests[0]!.body)).toMatchObject({
      inspection_token: 'look-1',
      brain_url: 'https://brain.test',
    })
    expect([during, [...open]]).toEqual([[['look-1']], []])
    service.script = (socket) => socket.destroy()
    await tools.call().end
    await new Promise(setImmediate)
    expect([...open]).toEqual([])
  })

  it('leaves neither url nor tokens in anything that is kept, whatever goes wrong', async () => {
    const canaries = ['canary-token', 'canary-path', 'canary-look', 'canary-proxy', String(service.port)]
    const hidden = echoAt(`${service.origin}/canary-path?canary-path`, {
      token_env: 'CANARY_ENV',
      inspect_session: true,
    })
    const parts = {
      secret: () => 'canary-token',
      inspect: () => ({ token: 'canary-look', brainUrl: 'b', close: () => undefined }),
    }
    const tools = openToolLab(hidden, parts)
    const kept: unknown[] = []
    for (const answer of [
      (request: RawRequest): Buffer => jsonAnswer(`{"content":[{"type":"text","text":"${request.head}`),
      (request: RawRequest): Buffer => jsonAnswer(request.head, 'application/json', '500 canary-token'),
      (request: RawRequest): Buffer => jsonAnswer(request.body, 'application/json', '403 canary-token'),
      (): Buffer => Buffer.from('canary-token'),
      (): Buffer => Buffer.from(headOf('302 canary-token', ['Location: /canary-path', 'Content-Length: 0'])),
      (): Buffer => jsonAnswer('{"content":canary-token}'),
    ]) {
      service.script = (socket, request) => socket.end(answer(request))
      const { end, services } = tools.call()
      kept.push(await end, services.notes)
    }
    const unreachable = [
      openToolLab({ ...hidden, url: `https://127.0.0.1:1/canary-path` }, parts),
      openToolLab({ ...hidden, url: `http://canary-path.invalid/` }, parts),
      openToolLab(
        { ...hidden, url: `https://canary-path.test/` },
        { ...parts, proxies: parseProxyRules({ https: `http://canary-proxy:canary-token@127.0.0.1:${service.port}` }) },
      ),
      openToolLab(hidden, { ...parts, secret: () => 'canary-token\n' }),
    ]
    service.script = (socket) => socket.end(headOf('407 canary-token', []))
    for (const each of unreachable) kept.push(await each.call().end, each.logged)
    const text = JSON.stringify([kept, tools.logged])
    for (const canary of [...canaries, 'CANARY_ENV']) expect(text).not.toContain(canary)
  })
})

describe('connections', () => {
  it('are kept between calls, one for each that is under way', async () => {
    const tools = openToolLab(echoAt(service.origin))
    const before = service.connections
    for (let call = 0; call < 5; call++) expect(await tools.call().end).toMatchObject({ status: 'ok' })
    expect(service.connections - before).toBe(1)
    await Promise.all([tools.call().end, tools.call().end, tools.call().end])
    expect(service.connections - before).toBe(3)
    tools.close()
  })

  it('that the service closed meanwhile are replaced before anything is written to them', async () => {
    const tools = openToolLab(echoAt(service.origin))
    for (let round = 0; round < 30; round++) {
      await tools.call().end
      for (const socket of service.sockets)
        if (round % 2 === 0) socket.end()
        else socket.resetAndDestroy()
      expect(await tools.call().end).toMatchObject({ status: 'ok' })
    }
    expect(service.requests).toHaveLength(60)
    tools.close()
  })

  it('that die once written to are not replaced: at most one POST arrives', async () => {
    const tools = openToolLab(echoAt(service.origin))
    for (let round = 0; round < 20; round++) {
      await tools.call().end
      const before = service.requests.length
      service.script = (socket) => (round % 2 === 0 ? socket.resetAndDestroy() : socket.end())
      expect(await tools.call().end).toMatchObject({
        type: 'unknown',
        message: expect.stringContaining('the connection broke'),
      })
      expect(service.requests.length - before).toBe(1)
      service.script = (socket) => socket.write(jsonAnswer(HELLO))
    }
    tools.close()
  })

  it('on which a service speaks unasked are not used again', async () => {
    const tools = openToolLab(echoAt(service.origin))
    await tools.call().end
    for (const socket of service.sockets) socket.write(jsonAnswer('{"structured_content":"poison"}'))
    expect(await tools.call().end).toMatchObject({ status: 'ok', content: 'hello' })
    tools.close()
  })
})

describe('a proxy', () => {
  const AUTHORIZATION = `Basic ${Buffer.from('user:p@ss').toString('base64')}`
  const proxies = (): string => `http://user:p%40ss@127.0.0.1:${service.port}`

  it('passes http on, in absolute form, with its own authorization', async () => {
    const tools = openToolLab(echoAt('http://tools.test:8081/echo?x', { token_env: 'K' }), {
      secret: () => 'key-1',
      proxies: parseProxyRules({ http: proxies() }),
    })
    expect(await tools.call().end).toMatchObject({ status: 'ok' })
    const [request] = service.requests
    expect(request?.head.split('\r\n')[0]).toBe('POST http://tools.test:8081/echo?x HTTP/1.1')
    expect(headersOf(request!)).toMatchObject({
      host: 'tools.test:8081',
      'proxy-authorization': AUTHORIZATION,
      authorization: 'Bearer key-1',
    })
    service.script = (socket) => socket.end(headOf('407 Proxy Authentication Required', ['Content-Length: 0']))
    expect(await tools.call().end).toMatchObject({
      error: { code: 'tool_http_status', message: expect.stringContaining('proxy') },
    })
  })

  it('is a tunnel for https, and sees nothing of the call', async () => {
    const pem = (name: string): string =>
      readFileSync(new URL(`../../../fixtures/tls/localhost.${name}`, import.meta.url), 'utf8')
    const heads: unknown[] = []
    const secure = createSecureServer({ key: pem('key'), cert: pem('crt') }, (request, response) => {
      heads.push(request.headers)
      response.setHeader('Content-Type', 'application/json').end(HELLO)
    }).listen(0, '127.0.0.1')
    await once(secure, 'listening')
    const { port } = secure.address() as AddressInfo
    const trusted = getCACertificates()
    setDefaultCACertificates([pem('crt')])
    const connects: IncomingMessage[] = []
    const proxy = createServer().on('connect', (request: IncomingMessage, socket: Socket) => {
      connects.push(request)
      const upstream = connect(port, '127.0.0.1', () => socket.write(headOf('200 Connection established', [])))
      upstream.on('error', () => socket.destroy()).pipe(socket)
      socket.on('error', () => upstream.destroy()).pipe(upstream)
    })
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    try {
      const tools = openToolLab(echoAt(`https://localhost:${port}/x`), {
        proxies: parseProxyRules({ https: `http://user:p%40ss@127.0.0.1:${(proxy.address() as AddressInfo).port}` }),
      })
      expect(await tools.call().end).toMatchObject({ status: 'ok' })
      expect(await tools.call().end).toMatchObject({ status: 'ok' })
      expect(connects.map(({ url }) => url)).toEqual([`localhost:${port}`])
      expect(connects[0]?.headers['proxy-authorization']).toBe(AUTHORIZATION)
      expect(heads).toHaveLength(2)
      expect(heads[0]).not.toHaveProperty('proxy-authorization')
      tools.close()
    } finally {
      setDefaultCACertificates(trusted)
      secure.close()
      secure.closeAllConnections()
      proxy.close()
    }
  })

  it('that refuses or cannot be reached leaves the call unsent; one that is exempt is not asked', async () => {
    const at = (https: string): Promise<unknown> =>
      openToolLab(echoAt('https://tools.test/'), { proxies: parseProxyRules({ https }) }).call().end
    service.script = (socket) => socket.end(headOf('407 Proxy Authentication Required', ['Content-Length: 0']))
    const unreachable = (reason: string): object => ({
      error: { code: 'tool_unreachable', message: expect.stringContaining(reason) },
    })
    expect(await at(proxies())).toMatchObject(unreachable('its proxy refuses it with HTTP 407'))
    expect(await at('http://127.0.0.1:1')).toMatchObject(unreachable('no connection to its proxy (ECONNREFUSED)'))
    service.script = (socket) => socket.write(jsonAnswer(HELLO))
    const exempt = parseProxyRules({ http: 'http://127.0.0.1:1', except: '127.0.0.1' })
    expect(await openToolLab(echoAt(service.origin), { proxies: exempt }).call().end).toMatchObject({ status: 'ok' })
  })
})
