import { Ajv2020 } from 'ajv/dist/2020.js'
import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { sessionSchema } from '../../../.ci/contracts/session-schema.ts'
import type { Json } from '../../../src/kernel/json.ts'
import { parseCreateRequest } from '../../../src/session/create-request.ts'
import type { Agentloop } from '../../../src/turn/agentloop.ts'
import { openHarness, toolNamed } from '../../support/session-harness.ts'

const ajv = new Ajv2020({ strict: false })
/** What a definition has against a value; nothing for what it takes. */
const faultOf = (name: string, value: unknown): string | undefined => {
  const check = ajv.getSchema(`session#/$defs/${name}`)
  if (check === undefined) throw new Error(`there is no definition ${name}`)
  return check(value) === true ? undefined : ajv.errorsText(check.errors)
}

let published: object
beforeAll(async () => {
  const file = new URL('../../../wit/session.json', import.meta.url)
  published = JSON.parse(await readFile(file, 'utf8')) as object
  ajv.addSchema(published, 'session')
})

const model = { provider: 'scripted', name: 'script', api_key: 'k' }
const implementation = { type: 'brain_component', entrypoint: 'run', id: 'a'.repeat(64), configuration: {} }
const tool = { name: 'lookup', placements: { box: { implementation } } }
const box = { name: 'box', driver: 'brain', lifecycle: 'automatic' }
const text = { type: 'text', text: 'hi' }
const said = (block: unknown) => ({ model, transcript: [{ role: 'user', content: [block] }] })
const grant = { environment: 'box', permissions: ['read', 'call'], methods: ['look'] }

const TAKEN: readonly unknown[] = [
  { model },
  { model: { ...model, script: [{ text: 'x' }] }, system: '', tools: [], environments: [], idle_ttl_ms: 0 },
  { model, agentloop: { implementation: { type: 'builtin', name: 'default' }, configuration: null } },
  { model, agentloop: { implementation, environment: 'box', environments: [grant] }, environments: [box] },
  { model, tools: [tool], environments: [{ ...box, configuration: { network: ['https://api.example'] } }] },
  { model, tools: [{ ...tool, name: '_a.b:c', description: '', input_schema: {}, output_schema: { type: 'null' } }] },
  { model, environments: [{ ...box, driver: 'host', host_id: 'host_x', lifecycle: 'manual' }] },
  { model, agentloop: null, transcript: null, environments: [{ ...box, methods: null, environments: null }] },
  {
    model,
    environments: [
      {
        ...box,
        driver: 'http',
        url: 'https://x.example',
        credential: 'c',
        methods: { look: { description: '', input_schema: {} } },
      },
    ],
  },
  { model, config: { tools: ['echo'] }, response_format: { type: 'object' }, labels: { team: 'a', 'a.b': '' } },
  said(text),
  said({ type: 'image', url: 'https://images.example/ü.png' }),
  said({ type: 'file', media_type: 'application/pdf', url: 'HTTPS://files.example/a.pdf' }),
  said({ type: 'tool_use', id: 'c', name: 'x', input: null }),
  said({ type: 'tool_result', tool_use_id: 'c', content: [1], is_error: false, media: [] }),
  said({ type: 'native', format: 'x/1', data: {} }),
]

const REFUSED: readonly unknown[] = [
  null,
  [],
  {},
  { model, metadata: {} },
  { model: { provider: 'scripted', name: 'script' } },
  { model: { ...model, provider: 'a b' } },
  { model: { ...model, name: 'a b' } },
  { model: { ...model, name: 'x'.repeat(257) } },
  { model: { ...model, api_key: '' } },
  { model: { ...model, secret: 1 } },
  { model, system: null },
  { model, tools: {} },
  { model, tools: [{ ...tool, name: '-x' }] },
  { model, tools: [{ ...tool, placements: {} }] },
  { model, tools: [{ ...tool, placements: { box: {} } }] },
  { model, tools: [{ ...tool, input_schema: true }] },
  { model, tools: [{ ...tool, needs: [] }] },
  { model, tools: Array.from({ length: 1025 }, () => tool) },
  { model, environments: [{ ...box, lifecycle: undefined }] },
  { model, environments: [{ ...box, driver: 'docker' }] },
  { model, environments: [{ ...box, name: '_box' }] },
  { model, environments: Array.from({ length: 257 }, () => box) },
  { model, agentloop: { implementation, environments: [{ ...grant, permissions: ['all'] }] } },
  { model, agentloop: { configuration: {} } },
  { model, environments: [{ ...box, methods: { look: { description: '' } } }] },
  { model, environments: [{ ...box, template: { max_instances: 0, configuration_schema: {} } }] },
  { model, environments: [{ ...box, environments: [{ ...grant, methods: ['a b'] }] }] },
  { model, config: {} },
  { model, idle_ttl_ms: -1 },
  { model, idle_ttl_ms: 1.5 },
  { model, labels: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`l${n}`, ''])) },
  { model, labels: { 'a b': '' } },
  { model, labels: { a: 'x'.repeat(257) } },
  { model, response_format: [] },
  said({ type: 'text' }),
  said({ ...text, cache: true }),
  said({ type: 'image', url: 'http://images.example/cat.png' }),
  said({ type: 'file', media_type: 'text/plain', url: 'https://files.example/a' }),
  said({ type: 'tool_result', tool_use_id: 'c', content: 1 }),
  { model, transcript: [{ role: 'system', content: [] }] },
]

describe('wit/session.json', () => {
  it('is what the sources make: npm run docs writes it', () => {
    expect(published).toEqual(sessionSchema())
  })

  const shown = (requests: readonly unknown[]): [string, unknown][] =>
    requests.map((request) => [JSON.stringify(request).slice(0, 160), JSON.parse(JSON.stringify(request))])

  it.each(shown(TAKEN))('takes as the server does %s', (_shown, request) => {
    expect(faultOf('CreateSessionRequest', request)).toBeUndefined()
    expect(() => parseCreateRequest(request as Json)).not.toThrow()
  })

  it.each(shown(REFUSED))('refuses as the server does %s', (_shown, request) => {
    expect(faultOf('CreateSessionRequest', request)).toBeDefined()
    expect(() => parseCreateRequest(request as Json)).toThrow('Cannot create the session')
  })

  it('describes what the server answers and records, and what its loops are given and get', async () => {
    const seen: [string, unknown][] = []
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] as const
    const loop: Agentloop = {
      run: async (input, host) => {
        seen.push(['TurnInput', input])
        const call = { call_id: 'c', name: 'lookup', environment: 'box', input: {} }
        const [answer] = await host.dispatch([call])
        seen.push(['ToolInvocation', call], ['ToolReturn', answer], ['ModelRequest', { messages }])
        seen.push(['ModelResult', await host.model({ messages })], ['EventPage', await host.events(0)])
        await host.setTranscript(messages)
        await host.kvPut('note', null)
        await host.kvDelete('note')
        await host.emit('progress', [1])
        return { result: 1 }
      },
    }
    await using harness = openHarness({ loop })
    const id = await harness.create({ tools: [toolNamed('lookup')] })
    const sent = harness.send(id, 'go')
    const { services, end } = await harness.binding.next()
    await services.emitResult('{"status":"error","error":{"code":"lost","message":"Lost"},"content":"gone"}')
    await services.finish('{"status":"ok","value":1}')
    end({ type: 'result', text: '' })
    seen.push(['SessionSummary', JSON.parse((await sent).body)])
    await harness.cancel(id)
    seen.push(['SessionSummary', JSON.parse((await harness.end(id)).body)])
    const records = await harness.records(id)
    seen.push(...records.map((record) => ['Event', record] as [string, unknown]))
    for (const { event_type, data } of records) {
      if (event_type === 'tool_result_emitted') seen.push(['ToolResult', (data as any).result])
      if (event_type === 'tool_call_ended') seen.push(['ToolOutput', (data as any).outcome])
    }
    expect(seen.length).toBeGreaterThan(30)
    expect(seen.filter(([name, value]) => faultOf(name, value) !== undefined)).toEqual([])
    const reported = { sequence: 1, recorded_at_ms: 1, event_type: 'disk_full', data: null }
    const environment = { name: 'box', sequence: 1 }
    expect(faultOf('Event', { ...reported, origin: { kind: 'environment', environment } })).toBeUndefined()
    expect(faultOf('Event', { ...reported, origin: { kind: 'environment' } })).toBeDefined()
    // What is not as it must be is told from what is.
    for (const record of records.filter(({ event_type }) => /^(turn|tool_call|model_call|kv)_/.test(event_type)))
      expect(faultOf('Event', { ...record, data: {} })).toBeDefined()
  })
})
