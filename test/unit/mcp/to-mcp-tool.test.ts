import { describe, expect, it } from 'vitest'
import { toMcpTool } from '../../../src/mcp/to-mcp-tool.ts'

const tool = { name: 't', description: 'd', input_schema: { type: 'object' }, output_schema: {}, environments: ['box'] }

describe('toMcpTool()', () => {
  it('shows name, description and input', () => {
    expect(toMcpTool(tool)).toEqual({ name: 't', description: 'd', inputSchema: { type: 'object' } })
  })

  it('shows an output schema that says something', () => {
    expect(toMcpTool({ ...tool, output_schema: { type: 'number' } })).toMatchObject({
      outputSchema: { type: 'number' },
    })
  })

  it.each([{}, { anyOf: [{ required: ['a'] }] }, { type: ['object', 'null'] }])('makes an object of %j', (schema) => {
    expect(toMcpTool({ ...tool, input_schema: schema })?.inputSchema).toEqual({ ...schema, type: 'object' })
  })

  it.each([{ type: 'string' }, { type: ['array', 'null'] }])('leaves out what takes no objects: %j', (schema) => {
    expect(toMcpTool({ ...tool, input_schema: schema })).toBeUndefined()
  })

  it('names the environments of a tool that has several', () => {
    expect(toMcpTool({ ...tool, environments: ['a', 'b'] })).toMatchObject({
      _meta: { 'brain/environments': ['a', 'b'] },
    })
  })
})
