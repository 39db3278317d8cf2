import { MessagePort, workerData } from 'node:worker_threads'
import { checkValue, type CompiledSchema, compileSchema } from './compiled-schema.ts'
import type { FromSchemaThread, SchemaCheck } from './schema-protocol.ts'

/**
 * Runs schemas that strangers wrote. Nothing of the server is loaded here, and it may be killed at any moment: it keeps
 * nothing but compiled schemas.
 */
const port: unknown = workerData
if (!(port instanceof MessagePort)) throw new Error('Cannot check schemas: no port came with this thread')
const tell = (message: FromSchemaThread): void => port.postMessage(message)
const compiled = new Map<string, CompiledSchema>()

function schemaOf({ digest, schema, drop }: SchemaCheck): CompiledSchema {
  if (drop !== undefined) compiled.delete(drop)
  const known = compiled.get(digest)
  if (known !== undefined) return known
  if (schema === undefined) throw new Error(`no schema came for ${digest}`)
  const fresh = compileSchema(schema)
  compiled.set(digest, fresh)
  return fresh
}

function faultOf(check: SchemaCheck): string | undefined {
  const schema = schemaOf(check)
  if (check.value !== undefined) return checkValue(schema, check.value)
  return 'fault' in schema ? schema.fault : undefined
}

/** Reading the CPU clock costs as much as a check: it is told no more often than this. */
const CPU_EVERY_MS = 5
let cpuToldAt = 0

function cpuMs(): number {
  cpuToldAt = performance.now()
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

port.on('message', (check: SchemaCheck) => {
  const fault = faultOf(check)
  const cpu = performance.now() - cpuToldAt > CPU_EVERY_MS && { cpuMs: cpuMs() }
  tell({ type: 'verdict', id: check.id, ...(fault !== undefined && { fault }), ...cpu })
})
tell({ type: 'ready', cpuMs: cpuMs() })
