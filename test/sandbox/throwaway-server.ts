// A server that the tests kill: prints the supervisor's process id, then keeps calls going until it dies.
import { defaultLimits } from '../../src/contract/limits.ts'
import type { SandboxLevel } from '../../src/sandbox/sandbox.ts'
import { openProcessSandbox } from '../../src/sandbox/process-sandbox.ts'
import type { ComponentId } from '../../src/kernel/ids.ts'

const [, , level = '', dataDirectory = '', spin = '', quick = ''] = process.argv
const sandbox = await openProcessSandbox({
  dataDirectory,
  level: JSON.parse(level) as SandboxLevel,
  limits: { ...defaultLimits, warmBoxes: 3, sessionExecutions: 32 },
})
let calls = 0
const call = (component: string, key: string) =>
  sandbox.invoke(
    {
      key,
      owner: 'session',
      component: component as ComponentId,
      entry: { role: 'tool', input: '{}', configuration: '{}', deadlineAtMs: 0 },
      mounts: [],
      secrets: {},
      network: [],
    },
    { call: () => Promise.resolve('1') },
  )
for (let i = 0; i < 3; i++) call(spin, `spin ${i}`)
setInterval(() => call(quick, `quick ${calls++ % 4}`), 10)
process.stdout.write(`${(await sandbox.status()).supervisor?.pid}\n`)
