import { inspect } from 'node:util'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { agentloop, Brain, component, environment, hostEnv, tool, type HttpEnv } from '../../../src/sdk/index.ts'

const url = 'https://environment.example/base'
const plain = environment({ url })
const model = { provider: 'scripted', name: 'script', apiKey: 'none' }
const brain = new Brain({
  baseUrl: 'http://127.0.0.1:9',
  fetch: () => Promise.reject(new Error('no request is to be sent')),
})

describe('environment()', () => {
  it('gives a frozen environment with what was declared, in the form that is sent', () => {
    const github = environment({
      url: `${url}/`,
      credential: 'secret-1',
      options: z.object({ owner: z.string(), depth: z.number().default(2) }),
      configure: ({ owner, depth }) => {
        expectTypeOf(owner).toBeString()
        return { owner, limits: { depth } }
      },
      methods: {
        restart: {
          description: 'Starts it again',
          input: z.object({ hard: z.boolean().default(false) }),
          output: z.object({ at: z.number() }),
          effect: 'replace',
        },
        ping: { description: 'Answers', input: z.string() },
      },
    })
    const grants = [{ environment: 'other', permissions: ['call'], methods: ['ping'] }] as const
    const template = { maxInstances: 3, configuration: z.object({ owner: z.string() }) }
    const placed = github({ name: 'github', owner: 'aexhq', environments: grants, template })
    expectTypeOf(placed).toEqualTypeOf<HttpEnv>()
    expect(placed).toEqual({
      driver: 'http',
      name: 'github',
      url,
      configuration: { owner: 'aexhq', limits: { depth: 2 } },
      methods: {
        restart: {
          description: 'Starts it again',
          input_schema: { type: 'object', properties: { hard: { type: 'boolean', default: false } } },
          output_schema: {
            type: 'object',
            properties: { at: { type: 'number' } },
            required: ['at'],
            additionalProperties: false,
          },
          effect: 'replace',
        },
        ping: { description: 'Answers', input_schema: { type: 'string' } },
      },
      template: {
        max_instances: 3,
        configuration_schema: { type: 'object', properties: { owner: { type: 'string' } }, required: ['owner'] },
      },
      environments: grants,
    })
    for (const part of [github, placed, placed.methods, placed.configuration, placed.template, placed.environments])
      expect(Object.isFrozen(part)).toBe(true)
    // @ts-expect-error an option is missing
    expect(() => github({ name: 'github' })).toThrow('Cannot place environment "github": options')
  })

  it('can be read its credential, and prints it nowhere', () => {
    const placed = environment({ url, credential: 'secret-2' })({ name: 'quiet' })
    expect(placed.credential).toBe('secret-2')
    expect(inspect(placed) + JSON.stringify(placed)).not.toContain('secret-2')
  })

  it('takes options as the configuration, none without a schema, and keeps placements apart', () => {
    const given = { labels: ['a'] }
    const labelled = environment({ url, options: z.object({ labels: z.array(z.string()) }) })
    const placed = labelled({ name: 'one', ...given })
    given.labels.push('b')
    expect(placed.configuration).toEqual({ labels: ['a'] })
    expect(plain({ name: 'two' })).not.toHaveProperty('configuration')
    expect(environment({ url, configure: () => null })({ name: 'three' }).configuration).toBeNull()
    expect(() => plain({ name: 'four', labels: [] } as never)).toThrow('it takes no options')
    expect(() => environment({ url, configure: () => new Map() })({ name: 'five' })).toThrow(
      'Cannot place environment "five": configuration is an instance of Map, which is not JSON',
    )
  })

  it.each([
    ['https://environment.example', 'https://environment.example'],
    ['HTTPS://Environment.example:443//', 'https://environment.example'],
    ['http://127.0.0.1:8080/a/', 'http://127.0.0.1:8080/a'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://[::1]:80', 'http://[::1]'],
  ])('takes the URL %s', (given, sent) => {
    expect(environment({ url: given })({ name: 'a' }).url).toBe(sent)
    expect(environment({ url: new URL(given) })({ name: 'a' }).url).toBe(sent)
  })

  it.each([
    ['nowhere', 'must be a URL'],
    [undefined, 'must be a URL'],
    ['ftp://a.example', 'must be https'],
    ['http://a.example', 'must be https, or http to a literal loopback address'],
    ['http://localhost:1', 'must be https, or http to a literal loopback address'],
    ['http://127.0.0.1.example', 'must be https, or http to a literal loopback address'],
    ['http://[::2]', 'must be https, or http to a literal loopback address'],
    ['https://user@a.example', 'must not hold a user or password'],
    ['https://:word@a.example', 'must not hold a user or password'],
    ['https://a.example?key=1', 'must not have a query or fragment'],
    ['https://a.example/?', 'must not have a query or fragment'],
    ['https://a.example/#part', 'must not have a query or fragment'],
    [`https://a.example/${'a'.repeat(2048)}`, 'at most 2048 characters'],
  ])('refuses the URL %s with the rule', (given, rule) => {
    expect(() => environment({ url: given as string })).toThrow(TypeError)
    expect(() => environment({ url: given as string })).toThrow(rule)
  })

  it.each([
    [{ url, needs: [] }, 'it has no member "needs"'],
    [{ url, credential: '' }, 'credential must be 1 to 16384'],
    [{ url, credential: 'a\nb' }, 'credential must be 1 to 16384'],
    [{ url, credential: 'a'.repeat(16_385) }, 'credential must be 1 to 16384'],
    [{ url, configure: {} }, 'configure must be a function'],
    [{ url, options: z.object({ template: z.string() }) }, 'options must not have the member "template"'],
    [{ url, methods: [] }, 'methods must be an object'],
    [{ url, methods: { 'a b': { description: 'x', input: z.any() } } }, 'must be an identifier, not "a b"'],
    [{ url, methods: { a: { description: '', input: z.any() } } }, 'method "a": description'],
    [{ url, methods: { a: { description: 'x', input: {} } } }, 'method "a": input must be a schema of Zod 4'],
    [{ url, methods: { a: { description: 'x', input: z.any(), effect: 'all' } } }, 'effect must be "none" or'],
    [{ url, methods: { a: { description: 'x', input: z.object({ at: z.date() }) } } }, 'method "a": input.at: Date'],
  ])('refuses %o', (declaration, rule) => {
    expect(() => environment(declaration as never)).toThrow(rule)
  })

  it.each([
    [undefined, 'give an object'],
    [{}, 'name must be an identifier'],
    [{ name: 'a', template: { maxInstances: 0, configuration: z.any() } }, 'maxInstances must be a whole number'],
    [{ name: 'a', template: { maxInstances: 1, configuration: z.map(z.any(), z.any()) } }, 'template: configuration'],
    [{ name: 'a', environments: [{ environment: 'b', permissions: ['own'] }] }, 'permissions must be a list'],
  ])('refuses to be placed with %o', (placement, rule) => {
    expect(() => plain(placement as never)).toThrow(rule)
  })
})

describe('a session with an environment over HTTP', () => {
  const issue = tool({
    name: 'fetch_issue',
    description: 'Fetches one issue',
    input: z.object({ number: z.number().int() }),
    options: z.object({ repository: z.string() }),
    implementation: ({ repository }) => ({ type: 'http_json', path: `/repos/${repository}/issues/{number}` }),
  })

  it('is asked for with url, credential, methods, template and lifecycle; tools and loop are descriptors', async () => {
    const declared = environment({
      url,
      credential: 'secret',
      options: z.object({ owner: z.string() }),
      methods: { ping: { description: 'Answers', input: z.string() } },
    })
    const template = { maxInstances: 1, configuration: z.object({}) }
    const github = declared({ name: 'github', owner: 'aexhq', template })
    const conductor = agentloop({
      options: z.object({ n: z.number() }),
      implementation: ({ n }) => ({ type: 'loop', n }),
    })
    const request = await brain.sessions.prepare({
      model,
      agentloop: conductor({ env: github, n: 1 }),
      tools: [issue({ env: declared({ name: 'github', owner: 'aexhq', template }), repository: 'aexhq/brain' })],
      environment: { lifecycle: { bindings: { github: 'manual' } } },
    })
    expect(request).toMatchObject({
      agentloop: { implementation: { type: 'loop', n: 1 }, configuration: { n: 1 }, environment: 'github' },
      tools: [
        {
          placements: { github: { implementation: { type: 'http_json', path: '/repos/aexhq/brain/issues/{number}' } } },
        },
      ],
    })
    expect(request.environments).toEqual([
      {
        name: 'github',
        driver: 'http',
        url,
        credential: 'secret',
        configuration: { owner: 'aexhq' },
        methods: { ping: { description: 'Answers', input_schema: { type: 'string' } } },
        template: { max_instances: 1, configuration_schema: { type: 'object', properties: {} } },
        lifecycle: 'manual',
      },
    ])
  })

  it.each([
    ['another url', environment({ url: `${url}/other` })({ name: 'github' })],
    ['a credential', environment({ url, credential: 'a' })({ name: 'github' })],
    ['a configuration', environment({ url, configure: () => ({}) })({ name: 'github' })],
    ['another driver', hostEnv({ name: 'github' })],
  ])('takes equal environments of one name as one, and none with %s, before any request', async (_, other) => {
    const environments = [plain({ name: 'github' }), plain({ name: 'github' })]
    expect((await brain.sessions.prepare({ model, environments })).environments).toHaveLength(1)
    await expect(brain.sessions.create({ model, environments: [...environments, other] })).rejects.toThrow(
      'two different environments named "github"',
    )
  })

  it('places neither functions nor components there, and says where they run', () => {
    const env = plain({ name: 'github' })
    const bytes = component(new Uint8Array([0]))
    const base = { name: 'a', description: 'x', input: z.object({}) }
    expect(() => tool({ ...base, run: () => undefined })({ env } as never)).toThrow(
      'a function runs in the application',
    )
    expect(() => tool({ ...base, implementation: bytes })({ env })).toThrow(
      'a component runs in an env made by brainEnv',
    )
    expect(() => agentloop({ implementation: bytes })({ env })).toThrow('a component runs in an env made by brainEnv')
    expect(() => agentloop({ implementation: {} })({ env: hostEnv({ name: 'app' }) } as never)).toThrow(
      'it needs an env made by brainEnv() or by what environment() gives',
    )
  })
})
