// What the tests of the boxes share: artifacts of handwritten JavaScript (a real box, hostile text in the place of what
// jco makes), a sandbox on a directory of its own, and calls.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultLimits, type Limits } from '../../src/contract/limits.ts'
import type { ComponentId } from '../../src/kernel/ids.ts'
import { plantScript } from '../../src/sandbox/audit/plant-script.ts'
import { probeLevel } from '../../src/sandbox/level.ts'
import { openProcessSandbox, type ProcessSandboxOptions } from '../../src/sandbox/process-sandbox.ts'
import type {
  HostServices,
  Invocation,
  InvocationEnd,
  InvocationFacts,
  Sandbox,
  ToolEntry,
} from '../../src/sandbox/sandbox.ts'

/** Landlock, which starts quickest: bwrap is not looked for. What is about levels runs at both (levels.ts). */
export const level = await probeLevel({ searchPath: '' })
if (level.name === 'none')
  throw new Error(
    `These tests need a machine that offers a sandbox level; this one does not: ${level.remarks.join('; ')}`,
  )

/** A component whose `run(invocation, imports)` is the given body. */
export const scripted = (body: string, before = ''): string =>
  `export async function instantiate(getCoreModule, imports, instantiateCore) {\n${before}\nreturn { run(invocation) {\n${body}\n} } }\n`

export type Ended = { readonly end: InvocationEnd; readonly facts: InvocationFacts }
/** `input`, `configuration` and `deadlineAtMs` are those of a tool, unless there is another entry. */
export type CallOptions = Partial<Omit<Invocation, 'component'>> &
  Partial<Omit<ToolEntry, 'role'>> & { readonly services?: HostServices['call'] }

export class Lab implements AsyncDisposable {
  readonly data: string
  readonly sandbox: Sandbox
  readonly #own: boolean

  /** @param own whether the directory goes with it */
  constructor(data: string, sandbox: Sandbox, own: boolean) {
    this.data = data
    this.sandbox = sandbox
    this.#own = own
  }
  plant(js: string, cores?: Readonly<Record<string, Uint8Array>>): ComponentId {
    return plantScript(this.data, js, cores)
  }
  start(component: ComponentId, options: CallOptions = {}) {
    const { services, input = '{}', configuration = '{}', deadlineAtMs = 0, ...more } = options
    return this.sandbox.invoke(
      {
        key: component,
        owner: 'session',
        component,
        entry: { role: 'tool', input, configuration, deadlineAtMs },
        deadlineInMs: 30_000,
        mounts: [],
        secrets: {},
        network: [],
        ...more,
      },
      { call: services ?? (() => Promise.resolve('1')) },
    )
  }
  call(component: ComponentId, options?: CallOptions): Promise<Ended> {
    return this.start(component, options).ended
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.sandbox[Symbol.asyncDispose]()
    if (this.#own) rmSync(this.data, { recursive: true, force: true })
  }
}

export async function openLab(limits: Partial<Limits> = {}, more: Partial<ProcessSandboxOptions> = {}): Promise<Lab> {
  const data = more.dataDirectory ?? mkdtempSync(join(tmpdir(), 'brain-sandbox-'))
  const sandbox = await openProcessSandbox({
    dataDirectory: data,
    limits: { ...defaultLimits, warmBoxes: 1, ...limits },
    level,
    logger: { warn: (facts, message) => process.stderr.write(`${message} ${JSON.stringify(facts)}\n`) },
    ...more,
  })
  return new Lab(data, sandbox, more.dataDirectory === undefined)
}

/** Polls for what nothing announces. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, ms = 10_000): Promise<void> {
  const end = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
