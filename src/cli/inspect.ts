import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Finding, lint } from '../authoring/schema-lint/lint.ts'
import { PROVIDERS, providerSchema } from '../authoring/schema-lint/provider-schema.ts'
import { worldOf } from '../compose/local-brain.ts'
import { BrainError } from '../kernel/errors.ts'
import type { JsonObject } from '../kernel/json.ts'
import type { Component, ComponentRole } from '../sandbox/sandbox.ts'
import type { Environment } from './environment.ts'
import { grantsFor, type NeededGrant } from './inspect/grants-for.ts'
import { clipped, printable } from './printable.ts'
import { type Outputs, standardOutputs } from './tool/command-outputs.ts'
import { openBrain } from './tool/open-brain.ts'
import { readBounded } from './tool/json-argument.ts'
import { localConfig } from './tool/tool-setting.ts'

export type InspectFlags = {
  readonly json?: boolean
  /** Print the tool as this provider takes it, and nothing else. */
  readonly schema?: string
}

const TEXT_WIDTH = 2000

type Report = {
  readonly file: string
  readonly bytes: number
  readonly gzip_bytes: number
  readonly sha256: string
  readonly admitted: boolean
  /** Why it is refused, as an upload would be told. */
  readonly refusal?: { readonly code: string; readonly message: string; readonly fault?: unknown }
  readonly world?: string
  readonly metadata?: Component['metadata'] | null
  readonly imports?: readonly string[]
  readonly grants?: readonly NeededGrant[]
  /** What providers of models make of it. */
  readonly findings?: readonly Finding[]
}

/**
 * Says what a component is, what it may be given, and whether a server would admit it.
 * @returns exit code: 0 when it would, 1 when not
 * @throws BrainError when the file cannot be read
 */
export async function inspectComponent(
  env: Environment,
  file: string,
  flags: InspectFlags,
  outputs: Outputs = standardOutputs,
): Promise<number> {
  const config = await localConfig(env, { scratch: false, secrets: [], network: [] })
  const bytes = await readBounded(file, 'component', config.limits.packageBytes)
  await using brain = await openBrain(env, config, outputs)
  if (flags.schema !== undefined) {
    const { metadata } = await brain.admit(bytes)
    outputs.out(JSON.stringify(schemaFor(file, flags.schema, metadata), null, 2))
    return 0
  }
  const report = await describe(file, bytes, (role) => brain.admit(bytes, role))
  if (flags.json === true) outputs.out(JSON.stringify(report))
  else for (const line of linesOf(report)) outputs.out(line)
  return report.admitted ? 0 : 1
}

function schemaFor(file: string, provider: string, metadata: Component['metadata']): JsonObject {
  const known = PROVIDERS.find((one) => one === provider)
  const fail = (reason: string): never => {
    throw new BrainError('invalid_request', `Cannot print the schema of ${JSON.stringify(file)}: ${reason}`)
  }
  if (known === undefined) return fail(`--schema is one of ${PROVIDERS.join(', ')}`)
  if (metadata === undefined) return fail('it has no metadata; build it with brain build')
  return providerSchema(metadata, known)
}

async function describe(
  file: string,
  bytes: Buffer,
  admit: (role: ComponentRole) => Promise<Component>,
): Promise<Report> {
  const compressed = await promisify(gzip)(bytes)
  const facts = {
    file: basename(file),
    bytes: bytes.length,
    gzip_bytes: compressed.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
  try {
    const { role, metadata, imports } = await admitAsEither(admit)
    const found = {
      world: worldOf(role),
      metadata: metadata ?? null,
      imports,
      grants: grantsFor(imports),
      ...(metadata === undefined ? {} : { findings: lint(metadata) }),
    }
    return { ...facts, admitted: true, ...found }
  } catch (error) {
    if (!(error instanceof BrainError) || error.code === 'sandbox_unavailable') throw error
    const { code, message, details } = error
    const fault = (details as { readonly fault?: unknown } | undefined)?.fault
    return { ...facts, admitted: false, refusal: { code, message, ...(fault === undefined ? {} : { fault }) } }
  }
}

/** What is no tool may be an agentloop; what is neither is told why it is no tool. */
async function admitAsEither(admit: (role: ComponentRole) => Promise<Component>): Promise<Component> {
  try {
    return await admit('tool')
  } catch (refused) {
    return await admit('agentloop').catch(() => {
      throw refused
    })
  }
}

const size = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`

function* linesOf(report: Report): Generator<string> {
  const row = (name: string, text: string): string => `${name.padEnd(10)} ${clipped(printable(text), TEXT_WIDTH)}`
  yield row('file', `${report.file}, ${size(report.bytes)} (${size(report.gzip_bytes)} gzipped)`)
  yield row('sha256', report.sha256)
  if (report.refusal !== undefined) {
    yield row('verdict', `refused: ${report.refusal.message}`)
    return
  }
  yield row('world', report.world ?? '')
  const { metadata } = report
  if (metadata === null || metadata === undefined) yield row('metadata', 'none: sessions must describe the tool')
  else {
    yield row('name', metadata.name)
    yield row('describes', metadata.description)
    yield row('input', JSON.stringify(metadata.input_schema))
    if (metadata.output_schema !== undefined) yield row('output', JSON.stringify(metadata.output_schema))
    if (metadata.options_schema !== undefined) yield row('options', JSON.stringify(metadata.options_schema))
  }
  yield row('imports', (report.imports ?? []).join(' '))
  for (const { flag, for: what } of report.grants ?? []) yield row('may use', `${what}, when granted with ${flag}`)
  for (const { provider, severity, path, problem, remedy } of report.findings ?? [])
    yield row(severity, `${provider} ${path}: ${problem}; ${remedy}`)
  yield row('verdict', 'admitted')
}
