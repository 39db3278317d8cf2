import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../../src/contract/limits.ts'
import { boxProgram } from '../../../src/sandbox/supervisor/box-program.ts'

const NOTHING = Buffer.alloc(0)

/** Full collections of V8 while a script leaves as much dead memory as a box keeps of small tools: 64 MiB. */
function collections(flags: readonly string[]): number {
  const script = `
    const binary = Buffer.from('0061736d010000000503010011070a01066d656d6f72790200', 'hex')
    const module = new WebAssembly.Module(binary)
    for (let n = 0; n < 60; n++) new WebAssembly.Instance(module).exports.memory.buffer`
  const printed = execFileSync(process.execPath, [...flags, '--trace-gc', '-e', script], { encoding: 'utf8' })
  return printed.split('Mark-Compact').length - 1
}

describe('boxProgram()', () => {
  const { nodeFlags } = boxProgram(
    {
      limits: defaultLimits,
      isolation: 'tool',
      workspaceDirectories: {},
      level: { name: 'none', landlockAbi: 0, remarks: [], unsafe: false },
      dataDirectory: '/nowhere',
    },
    { launcher: NOTHING, program: NOTHING },
  )

  it('leaves the collection of dead instances to the box', () => {
    expect(collections(nodeFlags)).toBe(0)
    const others = nodeFlags.filter((flag) => !/external-memory|old-space/.test(flag))
    expect(collections([...others, '--max-old-space-size=128'])).toBeGreaterThan(0)
  })
})
