import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { bindTool, type PackagedTool } from '../../../src/sdk/declare/bind-tool.ts'
import { component } from '../../../src/sdk/declare/component.ts'
import { brainEnv, hostEnv } from '../../../src/sdk/declare/environments.ts'
import { toolMetadata } from '../../../src/sdk/declare/tool-metadata.ts'
import { tool, type HostExecutable, type TypesOf } from '../../../src/sdk/declare/tool.ts'
import { Execution } from '../../../src/sdk/host/execution.ts'
import { hostServices } from '../../../src/sdk/host/host-services.ts'

const box = brainEnv({ name: 'box' })
const lookup = tool({
  name: 'lookup',
  description: 'Finds one customer',
  input: z.object({ id: z.string().trim(), limit: z.number().default(3) }),
  output: z.object({ value: z.string() }).nullable(),
  options: z.object({ prefix: z.string().min(2), deep: z.boolean().default(false) }),
  run: ({ id, limit }, ctx) => ctx.finish({ value: `${ctx.options.prefix}${id}${limit}${ctx.options.deep}` }),
})
const reference = { type: 'node_package', package: '@acme/crm', version: '1.2.0', entry: '.', export: 'lookup' }
type Lookup = TypesOf<typeof lookup>

/** Calls the function of a placed tool. @returns what it told the server */
async function outcomeOf(executable: HostExecutable, input: any): Promise<any[]> {
  const told: any[] = []
  const call = { session_id: 'ses_1', sequence: 4, input }
  const services = hostServices(call, async (_route, body: any) => {
    told.push(body.update)
    return { sequence: 5 }
  })
  await new Execution(call, executable, services, () => {}).run()
  return told
}

describe('the metadata of a tool', () => {
  it('is JSON that a factory without the code can be made of, with the same types', () => {
    const metadata = toolMetadata(lookup)
    expect(metadata).toEqual({
      ...lookup.definition,
      options_schema: {
        type: 'object',
        properties: { prefix: { type: 'string', minLength: 2 }, deep: { type: 'boolean', default: false } },
        required: ['prefix'],
      },
    })
    const bound = bindTool<Lookup>(JSON.parse(JSON.stringify(metadata)), reference)
    expect(bound.definition).toEqual(lookup.definition)
    expect(toolMetadata(bound)).toEqual(metadata)
    expect(Object.isFrozen(bound) && Object.isFrozen(bound.definition.input_schema)).toBe(true)
    expectTypeOf<Lookup['input']>().toEqualTypeOf<{ id: string; limit?: number | undefined }>()
    expectTypeOf<Lookup['output']>().toEqualTypeOf<{ value: string } | null>()
    expectTypeOf(bound).toEqualTypeOf<PackagedTool<Lookup>>()
    expectTypeOf<TypesOf<typeof bound>>().toEqualTypeOf<Lookup>()
  })

  it('is refused for options that JSON Schema cannot say, at their path, and for what is no factory', () => {
    const dated = tool({
      name: 'dated',
      description: 'x',
      input: z.object({}),
      options: z.object({ since: z.array(z.date()) }),
      run: () => undefined,
    })
    expect(() => toolMetadata(dated)).toThrow(
      'Cannot declare tool "dated": options.since[]: Date cannot be represented in JSON Schema',
    )
    for (const other of [undefined, null, {}, () => {}, lookup.definition, dated({ since: [] })])
      expect(() => toolMetadata(other)).toThrow('it must be a factory made by tool() or bindTool()')
  })
})

describe('a bound tool', () => {
  const bound = bindTool<Lookup>(toolMetadata(lookup), reference)

  it('carries what runs it, with its options as they were given, frozen', () => {
    const options = { prefix: 'c:' }
    const placed = bound({ env: box, ...options })
    const configuration = { prefix: 'c:' }
    expect(placed.executable).toEqual({
      type: 'descriptor',
      descriptor: { ...reference, configuration },
      configuration,
    })
    expect(Object.isFrozen((placed.executable as any).descriptor.configuration)).toBe(true)
    expect(bound({ env: box, prefix: 'd:' }).executable).not.toEqual(placed.executable)
  })

  it('may be a component, whose metadata came from somewhere else', () => {
    const code = component(new Uint8Array([0]))
    const { executable } = bindTool<Lookup>(toolMetadata(lookup), code)({ env: box, prefix: 'c:' })
    expect(executable).toEqual({ type: 'component', component: code, configuration: { prefix: 'c:' } })
  })

  it('refuses options that its schema refuses, and a place that cannot run it, when it is called', () => {
    // @ts-expect-error no prefix
    expect(() => bound({ env: box })).toThrow('Cannot place tool "lookup": options: ✖ Invalid input')
    expect(() => bound({ env: box, prefix: 'x' })).toThrow('at prefix')
    expect(() => bound({ env: box, prefix: 'xy', deep: 3 as never })).toThrow('at deep')
    expect(() => bound({ env: box, prefix: 'xy', more: new Map() } as never)).toThrow('"lookup": options.more is an')
    expect(() => bound({ env: hostEnv({ name: 'app' }), prefix: 'xy' })).toThrow('give it an env that runs it')
    // @ts-expect-error no env
    expect(() => bound({ prefix: 'xy' })).toThrow('its code is not part of this application')
    const { options_schema: _, ...plain } = toolMetadata(lookup)
    expect(() => bindTool(plain, reference)({ env: box, prefix: 'xy' } as never)).toThrow('it takes no options')
  })

  it.each([
    [{ description: 'x', input_schema: {} }, 'Cannot declare tool undefined'],
    [{ name: 'a', description: '', input_schema: {} }, 'Cannot bind tool "a": description'],
    [{ name: 'a', description: 'x' }, 'Cannot bind tool "a": input_schema'],
    [{ name: 'a', description: 'x', input_schema: {}, output_schema: 3 }, 'Cannot bind tool "a": output_schema'],
    [{ name: 'a', description: 'x', input_schema: { a: new Date() } }, 'which is not JSON'],
    [{ name: 'a', description: 'x', input_schema: {}, needs: [] }, 'it has no member "needs"'],
  ])('refuses the metadata %j', (metadata, reason) => {
    expect(() => bindTool(metadata as never, reference)).toThrow(reason)
    expect(() => bindTool(toolMetadata(lookup), (() => reference) as never)).toThrow(TypeError)
    expect(() => bindTool(toolMetadata(lookup), reference, 'x' as never)).toThrow('runtime must be a function')
  })
})

describe('a bound tool with a runtime', () => {
  it('is imported with its first call in the application, and parses input, options and output there', async () => {
    let imports = 0
    const bound = bindTool<Lookup>(toolMetadata(lookup), reference, async () => {
      imports++
      return lookup
    })
    const placed = bound({ prefix: 'c:' })
    expect(placed.env).toBeUndefined()
    expect(imports).toBe(0)
    const { executable } = placed as { executable: HostExecutable }
    const value = { value: 'c:a3false' }
    expect(await outcomeOf(executable, { id: ' a ' })).toEqual([{ type: 'finish', outcome: { status: 'ok', value } }])
    expect(await outcomeOf(executable, { id: 7 })).toMatchObject([
      { outcome: { error: { code: 'invalid_input', message: expect.stringContaining('at id') } } },
    ])
    expect(imports).toBe(1)
    expect(bound({ env: box, prefix: 'c:' }).executable.type).toBe('descriptor')
  })

  it('fails the call when it cannot be imported or is another, and is imported again with the next', async () => {
    const answers = [() => Promise.reject(new Error('gone')), async () => 3, async () => lookup]
    const bound = bindTool<Lookup>(toolMetadata(lookup), reference, () => answers.shift()!())
    const { executable } = bound({ env: hostEnv({ name: 'app' }), prefix: 'c:' }) as { executable: HostExecutable }
    for (const message of ['gone', 'what was imported is no factory'])
      expect(await outcomeOf(executable, { id: 'a' })).toMatchObject([
        { outcome: { error: { code: 'tool_error', message: expect.stringContaining(message) } } },
      ])
    expect(await outcomeOf(executable, { id: 'a' })).toMatchObject([{ outcome: { status: 'ok' } }])
  })
})
