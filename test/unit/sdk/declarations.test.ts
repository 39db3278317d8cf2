import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { agentloop } from '../../../src/sdk/declare/agentloop.ts'
import { component } from '../../../src/sdk/declare/component.ts'
import { brainEnv, hostEnv } from '../../../src/sdk/declare/environments.ts'
import { tool, type PlacedTool } from '../../../src/sdk/declare/tool.ts'
import type { ToolContext } from '../../../src/sdk/host/tool-context.ts'

const bytes = component(new Uint8Array([0]))
const run = () => undefined
const box = brainEnv({ name: 'box' })

const withInput = (input: z.ZodType) =>
  tool({ name: 'probe', description: 'Probes', input, run }).definition.input_schema
const withOutput = (output: z.ZodType) =>
  tool({ name: 'probe', description: 'Probes', input: z.object({}), output, run }).definition.output_schema

describe('a declaration', () => {
  it('gives run its types without annotations', () => {
    const lookup = tool({
      name: 'lookup',
      description: 'Finds one customer',
      input: z.object({ id: z.string(), limit: z.number().default(3) }),
      output: z.object({ value: z.string() }).nullable(),
      options: z.object({ prefix: z.string(), deep: z.boolean().default(false) }),
      run: async (input, ctx) => {
        expectTypeOf(input).toEqualTypeOf<{ id: string; limit: number }>()
        expectTypeOf(ctx.options).toEqualTypeOf<{ prefix: string; deep: boolean }>()
        expectTypeOf(ctx.deadline).toEqualTypeOf<Date | undefined>()
        expectTypeOf(ctx.emit('seen', {})).resolves.toBeNumber()
        // @ts-expect-error a value that the output schema does not take
        await ctx.finish({ value: 3 })
        await ctx.finish({ status: 'error', error: { code: 'gone', message: 'It is gone', retryable: true } })
        return ctx.finish(null)
      },
    })
    expectTypeOf(lookup({ prefix: 'customer:' })).toEqualTypeOf<PlacedTool>()
    expectTypeOf(lookup({ env: hostEnv({ name: 'app' }), prefix: 'x' })).toEqualTypeOf<PlacedTool>()
    // @ts-expect-error options without what the schema needs
    expect(() => lookup({})).toThrow('Cannot place tool "lookup": options')
    // @ts-expect-error an argument is needed
    expect(() => lookup()).toThrow(TypeError)
  })

  it('gives tools without output and options the widest types', () => {
    const plain = tool({
      name: 'plain',
      description: 'Does nothing',
      input: z.object({ source: z.string() }),
      run: async (input, ctx) => {
        expectTypeOf(ctx).toEqualTypeOf<ToolContext<unknown, Readonly<Record<never, never>>>>()
        const sequence = await ctx.emit('started', { source: input.source })
        return ctx.finish({ sequence })
      },
    })
    expect(plain().executable).toMatchObject({ type: 'function', options: {} })
  })

  it('gives the function of a descriptor its options, and placements their env', () => {
    const fetchIssue = tool({
      name: 'fetch_issue',
      description: 'Fetches one issue',
      input: z.object({ number: z.number().int() }),
      options: z.object({ repository: z.string() }),
      implementation: ({ repository }) => {
        expectTypeOf(repository).toBeString()
        return { type: 'http_json', path: `/repos/${repository}/issues/{number}` }
      },
    })
    const placed = fetchIssue({ env: box, repository: 'a/b' })
    expect(placed.executable).toMatchObject({ type: 'descriptor', descriptor: { path: '/repos/a/b/issues/{number}' } })
    expect(Object.isFrozen((placed.executable as { descriptor: object }).descriptor)).toBe(true)
    // @ts-expect-error no env
    expect(() => fetchIssue({ repository: 'a/b' })).toThrow('needs an env that runs it')
  })

  it.each(['', 'a b', 'a.b', 'a/b', 'é', '😀', 'a\n', 'a'.repeat(65)])('refuses the name %j with the rule', (name) => {
    expect(() => tool({ name, description: 'x', input: z.object({}), run })).toThrow('^[A-Za-z0-9_-]{1,64}$')
  })

  it.each(['1abc', '_x', 'A-b', 'a'.repeat(64)])('takes the name %s', (name) => {
    expect(tool({ name, description: 'x', input: z.object({}), run })().name).toBe(name)
  })

  it('keeps a long description whole and refuses an empty one', () => {
    const described = (description: string) => tool({ name: 'a', description, input: z.object({}), run })
    expect(described('d'.repeat(5000)).definition.description).toHaveLength(5000)
    expect(() => described('')).toThrow('Cannot declare tool "a": description')
    expect(() => described('d'.repeat(8193))).toThrow(TypeError)
  })

  it('needs exactly one of run and implementation, and knows its members', () => {
    const base = { name: 'a', description: 'x', input: z.object({}) }
    expect(() => tool(base as never)).toThrow('either run or implementation')
    expect(() => tool({ ...base, run, implementation: bytes } as never)).toThrow('either run or implementation')
    expect(() => tool({ ...base, run, needs: ['git'] } as never)).toThrow('it has no member "needs"')
    expect(() => tool({ ...base, implementation: 3 } as never)).toThrow('implementation must be')
  })

  it('cannot be changed, and neither can what it makes', () => {
    const factory = tool({ name: 'a', description: 'x', input: z.object({}), run })
    for (const made of [factory, factory.definition, factory.definition.input_schema, factory(), factory().executable])
      expect(Object.isFrozen(made)).toBe(true)
  })
})

describe('input schemas', () => {
  it('say what is accepted before it is parsed (cases D-22)', () => {
    const length = z.string().transform((text) => text.length)
    expect(
      withInput(
        z.object({
          s: length.default(5),
          p: z.string().default('x'),
          f: length.prefault('hello'),
          q: z.coerce.number(),
          o: z.string().optional(),
        }),
      ),
    ).toEqual({
      type: 'object',
      properties: {
        s: { type: 'string' },
        p: { type: 'string', default: 'x' },
        f: { type: 'string', default: 'hello' },
        q: {},
        o: { type: 'string' },
      },
      required: ['q'],
    })
    expect(withInput(z.strictObject({ a: z.string() }))).toMatchObject({ additionalProperties: false })
  })

  it('accept all that Zod accepts: coerced, preprocessed, caught, trimmed, of either case', () => {
    const given = z.object({
      coerced: z.array(z.coerce.number().min(3).describe('at least 3')),
      preprocessed: z.preprocess((value) => value ?? 5, z.number()),
      caught: z.string().catch('x').nullable(),
      trimmed: z.string().trim().max(3),
      cased: z.string().regex(/^a/i),
      escaped: z.string().regex(new RegExp('^a\\-b')),
      halves: z.number().multipleOf(0.1),
      either: z.xor([z.coerce.number(), z.literal('none')]),
    })
    expect(withInput(given)).toEqual({
      type: 'object',
      properties: {
        coerced: { type: 'array', items: { description: 'at least 3' } },
        preprocessed: {},
        caught: { anyOf: [{ default: 'x' }, { type: 'null' }] },
        trimmed: { type: 'string' },
        cased: { type: 'string' },
        escaped: { type: 'string' },
        halves: { type: 'number' },
        either: { anyOf: [{}, { type: 'string', const: 'none' }] },
      },
      required: ['coerced', 'trimmed', 'cased', 'escaped', 'halves', 'either'],
    })
    expect(withInput(z.preprocess((value) => value, z.object({ a: z.string() })))).toEqual({ type: 'object' })
  })

  it.each<[string, z.ZodType]>([
    ['date', z.date()],
    ['coerced date', z.coerce.date()],
    ['bigint', z.bigint()],
    ['map', z.map(z.string(), z.string())],
    ['undefined', z.undefined()],
    ['custom', z.custom(() => true)],
    ['instanceof', z.instanceof(Date)],
    ['nan', z.nan()],
    ['file', z.file()],
  ])('refuse %s, naming tool and path (cases D-21)', (_name, bad) => {
    const input = z.object({ rows: z.array(z.object({ when: bad })) })
    expect(() => withInput(input)).toThrow('Cannot declare tool "probe": input.rows[].when: ')
  })

  it('have a plain object at the root', () => {
    expect(() => withInput(z.union([z.object({}), z.object({ a: z.string() })]))).toThrow('must be an object schema')
    expect(() => withInput(z.string())).toThrow('must be an object schema')
    expect(() => withInput({ type: 'object' } as never)).toThrow('input must be a schema of Zod 4')
    expect(withInput(z.object({ at: z.iso.datetime() }).transform(({ at }) => at))).toMatchObject({ type: 'object' })
  })
})

describe('output schemas', () => {
  it('say what is produced, whatever its root', () => {
    expect(withOutput(z.object({ a: z.number().default(3) }).nullable())).toEqual({
      anyOf: [
        {
          type: 'object',
          properties: { a: { type: 'number', default: 3 } },
          required: ['a'],
          additionalProperties: false,
        },
        { type: 'null' },
      ],
    })
    expect(withOutput(z.array(z.string()))).toEqual({ type: 'array', items: { type: 'string' } })
  })

  it('refuse a transform, whose result nobody knows', () => {
    const output = z.object({ a: z.string().transform((text) => text.length) })
    expect(() => withOutput(output)).toThrow('Cannot declare tool "probe": output.a: ')
    expect(
      withOutput(
        z
          .string()
          .transform((text) => text.length)
          .pipe(z.number()),
      ),
    ).toEqual({ type: 'number' })
  })
})

describe('options', () => {
  const declare = (options: never) => tool({ name: 'a', description: 'x', input: z.object({}), options, run })

  it('are parsed once a placement, frozen all the way down, and apart from what was given', () => {
    let parsed = 0
    const configured = tool({
      name: 'a',
      description: 'x',
      input: z.object({}),
      options: z.object({ list: z.array(z.object({ key: z.string() })), any: z.any() }).transform((value) => {
        parsed++
        return value
      }),
      run,
    })
    const any = { inner: [1] }
    const { options } = configured({ list: [{ key: 'k' }], any }).executable as { options: any }
    expect(parsed).toBe(1)
    for (const part of [options, options.list, options.list[0], options.any, options.any.inner])
      expect(Object.isFrozen(part)).toBe(true)
    any.inner.push(2)
    expect(options.any.inner).toEqual([1])
  })

  it('need a schema, an object schema, and one without members that placements have', () => {
    const bare = tool({ name: 'a', description: 'x', input: z.object({}), run })
    expect(() => bare({ depth: 1 } as never)).toThrow('it takes no options, so there is no member "depth"')
    expect(() => declare(z.object({ env: z.string() }) as never)).toThrow('must not have the member "env"')
    expect(() => declare(z.object({ environments: z.string() }).optional() as never)).toThrow('"environments"')
    expect(() => declare(z.string() as never)).toThrow('options must be an object schema')
  })
})

describe('environments and placements', () => {
  it('check what they are given', () => {
    expect(() => brainEnv({ name: 'a b' })).toThrow('must be an identifier')
    expect(() => brainEnv({ name: 'a', secrets: ['1x'] })).toThrow('the name of a variable')
    expect(() => brainEnv({ name: 'a', network: ['https://a.example/path'] })).toThrow('an origin such as')
    expect(() => brainEnv({ name: 'a', filesystem: { home: 'read' } as never })).toThrow('no member "home"')
    expect(() => brainEnv({ name: 'a', filesystem: { workspace: 'all' as never } })).toThrow('"read" or "write"')
    expect(() => brainEnv({ name: 'a', needs: [] } as never)).toThrow('no member "needs"')
    expect(() => hostEnv({ name: 'a', url: 'x' } as never)).toThrow('no member "url"')
    expect(() => component('x' as never)).toThrow(TypeError)
    expect(() => component(new URL('data:,x'))).toThrow(TypeError)
  })

  it('put functions into hosts and implementations elsewhere', () => {
    const base = { name: 'a', description: 'x', input: z.object({}) }
    expect(() => tool({ ...base, run })({ env: box } as never)).toThrow('a function runs in the application')
    expect(() => tool({ ...base, implementation: bytes })({ env: hostEnv({ name: 'h' }) })).toThrow('needs an env')
    expect(() => tool({ ...base, run })({ env: { name: 'h', driver: 'host' } } as never)).toThrow('made by brainEnv()')
  })

  it('configure agentloops like tools', () => {
    const loop = agentloop({ implementation: bytes, options: z.object({ rounds: z.number().default(2) }) })
    expect(loop({ env: box }).executable).toMatchObject({ type: 'component', configuration: { rounds: 2 } })
    expect(() => agentloop({ implementation: bytes, name: 'x' } as never)).toThrow('no member "name"')
    expect(() => loop({ env: hostEnv({ name: 'h' }) } as never)).toThrow('made by brainEnv()')
  })
})
