import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { LocalBrain } from '../compose/local-brain.ts'
import { BrainError } from '../kernel/errors.ts'
import type { Component } from '../sandbox/sandbox.ts'
import type { Environment } from './environment.ts'
import { clipped, printable } from './printable.ts'
import type { ToolCase } from './test-cases/case-schema.ts'
import { faultsOf } from './test-cases/judge-case.ts'
import { readCases } from './test-cases/read-cases.ts'
import { type Outputs, standardOutputs } from './tool/command-outputs.ts'
import { openBrain } from './tool/open-brain.ts'
import { parseDuration } from './tool/duration.ts'
import { type GrantFlags, readGrants } from './tool/grants.ts'
import { readBounded } from './tool/json-argument.ts'
import { BOX, localConfig, nameOf, sessionWith, type ToolSetting } from './tool/tool-setting.ts'

export type TestFlags = Pick<GrantFlags, 'secret' | 'net'> & { readonly cases?: string; readonly json?: boolean }

const CASES_FILES = ['cases.json', 'cases.yaml', 'cases.yml']
const FAULT_WIDTH = 500

/**
 * Runs the cases of a tool in boxes, a session for each, and says which are not as they should be.
 * @returns exit code: 0 when all are, 1 when one is not
 * @throws BrainError when they cannot be run
 */
export async function testTool(
  env: Environment,
  file: string,
  flags: TestFlags,
  outputs: Outputs = standardOutputs,
): Promise<number> {
  const grants = await readGrants(env, flags)
  const config = await localConfig(env, grants)
  const cases = await readCases(flags.cases ?? findCases(file))
  const bytes = await readBounded(file, 'component', config.limits.packageBytes)
  await using brain = await openBrain(env, config, outputs)
  const component = await brain.admit(bytes)
  let failed = 0
  for (const one of cases) {
    const began = performance.now()
    const faults = await runCase(brain, component, { one, grants })
    if (faults.length > 0) failed++
    report(outputs, flags.json === true, { one, faults, elapsedMs: Math.round(performance.now() - began) })
  }
  const passed = cases.length - failed
  if (flags.json === true) outputs.out(JSON.stringify({ type: 'summary', passed, failed }))
  else outputs.out(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

/** Beside the component, or in the folder that `brain build` puts it under. */
function findCases(file: string): string {
  const folders = [...new Set([dirname(file), dirname(dirname(file)), '.'])]
  const found = folders.flatMap((folder) => CASES_FILES.map((name) => join(folder, name))).find(existsSync)
  if (found !== undefined) return found
  throw new BrainError(
    'invalid_request',
    `Cannot test ${JSON.stringify(file)}: there is no cases.json or cases.yaml beside it; name one with --cases`,
  )
}

async function runCase(
  brain: LocalBrain,
  component: Component,
  { one, grants }: { one: ToolCase; grants: ToolSetting },
): Promise<readonly string[]> {
  const model = one.model === undefined ? grants.model : { ...grants.model, script: one.model }
  const setting = { ...grants, options: one.options, model, ownWorkspace: true, scratch: true }
  const session = await brain.createSession(sessionWith(component, setting))
  for (const [path, text] of Object.entries(one.files))
    await brain.putFile(session, BOX, { path, bytes: Buffer.from(text) })
  const answer = await brain.call(session, {
    tool: nameOf(component),
    input: one.input,
    deadlineMs: parseDuration(one.deadline, `the deadline of case "${one.name}"`),
  })
  const paths = Object.keys(one.expect.files ?? {})
  const texts = await Promise.all(paths.map(async (path) => [path, await textOf(brain, session, path)] as const))
  return faultsOf(one, { ...answer, files: Object.fromEntries(texts) })
}

async function textOf(
  brain: LocalBrain,
  session: Awaited<ReturnType<LocalBrain['createSession']>>,
  path: string,
): Promise<string | undefined> {
  const bytes = await brain.readFile(session, BOX, path)
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8')
}

type Reported = { readonly one: ToolCase; readonly faults: readonly string[]; readonly elapsedMs: number }

function report({ out }: Outputs, isJson: boolean, { one: { name }, faults, elapsedMs }: Reported): void {
  const isOk = faults.length === 0
  if (isJson) return out(JSON.stringify({ type: 'case', name, passed: isOk, faults, elapsed_ms: elapsedMs }))
  out(`${isOk ? 'ok' : 'FAILED'} ${printable(name)} (${elapsedMs} ms)`)
  for (const fault of faults) out(`  ${clipped(printable(fault), FAULT_WIDTH)}`)
}
