import { readFileSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { cpuMsIn, ProcessMeter } from '../../../src/sandbox/supervisor/process-meter.ts'

describe('cpuMsIn()', () => {
  const rest = 'S 1 1 1 0 -1 4194560 1 0 0 0 12 34 0 0 20 0 11 0 100 0 0'

  it.each([
    [`1 (node) ${rest}`, 460],
    [`1 (a) b) c) ${rest}`, 460],
    ['', undefined],
    ['1 (node', undefined],
    ['1 (node) S 1 1 1', undefined],
  ])('reads %j', (stat, ms) => {
    expect(cpuMsIn(stat)).toBe(ms)
  })

  it('reads what the kernel says of this process', () => {
    expect(cpuMsIn(readFileSync('/proc/self/stat', 'latin1'))).toBeGreaterThan(0)
  })
})

it('a meter keeps what it last read of a process that is gone', async () => {
  const child = spawn(process.execPath, [
    '-e',
    'for (const end = Date.now() + 200; Date.now() < end;); process.stdin.resume()',
  ])
  const meter = new ProcessMeter(child.pid ?? 0)
  await expect.poll(() => meter.cpuMs()).toBeGreaterThanOrEqual(50)
  const before = meter.cpuMs()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(meter.cpuMs()).toBeGreaterThanOrEqual(before)
  meter.close()
})
