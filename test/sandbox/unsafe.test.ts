import { describe, expect, it } from 'vitest'
import type { SandboxLevel } from '../../src/sandbox/sandbox.ts'
import { openLab, scripted } from './lab.ts'

const none: SandboxLevel = { name: 'none', landlockAbi: 0, remarks: ['the test says so'], unsafe: false }

describe('level `none`', () => {
  it('refuses every call, naming the reason', async () => {
    await using lab = await openLab({}, { level: none })
    const { end } = await lab.call(lab.plant(scripted('return "ran"')))
    expect(end).toEqual({
      type: 'refused',
      code: 'environment_not_ready',
      message: expect.stringContaining('the test says so'),
    })
    expect((await lab.sandbox.status()).boxes).toEqual([])
  })

  it('with `unsafe` runs calls behind the flags of Node alone, deadlines and crashes included', async () => {
    await using lab = await openLab({}, { level: { ...none, unsafe: true } })
    const id = lab.plant(scripted(`imports['brain:tool/host'].emit('a', '1'); return invocation.inputJson`))
    for (const input of ['1', '2', '3'])
      expect((await lab.call(id, { input })).end).toEqual({ type: 'returned', text: input })
    const denied = lab.plant(
      scripted(
        `try { process.getBuiltinModule('fs').readFileSync('/etc/passwd'); return 'read' } catch (error) { return error.code }`,
      ),
    )
    expect((await lab.call(denied)).end).toEqual({ type: 'returned', text: 'ERR_ACCESS_DENIED' })
    const printed = lab.plant(scripted(`process.getBuiltinModule('fs').writeSync(1, 'printed'); return ''`))
    expect((await lab.call(printed)).end.type).toBe('returned')
    expect((await lab.call(lab.plant(scripted('for (;;);')), { deadlineInMs: 2000 })).end).toEqual({
      type: 'stopped',
      reason: 'timeout',
    })
    expect((await lab.call(lab.plant(scripted('process.abort()')))).end.type).toBe('lost')
    expect((await lab.call(id, { input: '4' })).end).toEqual({ type: 'returned', text: '4' })
  })
})
