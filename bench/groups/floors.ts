import { randomBytes } from 'node:crypto'
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { parseComponentId } from '../../src/kernel/ids.ts'
import { readArtifact } from '../../src/sandbox/admission/artifact.ts'
import type { Group, Run } from '../run.ts'
import { type CoreModule, wasm } from '../web-assembly.ts'

/** About what one record takes. */
const RECORD_BYTES = 512
const WRITES = 200
/** About what lies between the two appends of a warm call: processor and disk have gone to sleep meanwhile. */
const SPACE_MS = 0.5
const INSTANCES = 200

/** As many records as the clients of `journal-records-per-second` may have waiting at once. */
const TOGETHER = 16

/** What no design can be faster than: a durable write, of one record or of many, and a bare instance of the tool's core. */
export const floors: Group = async (run) => ({
  'durable-write-floor': durableWrites(run.server.dataDirectory, RECORD_BYTES),
  'spaced-write-floor': durableWrites(run.server.dataDirectory, RECORD_BYTES, SPACE_MS),
  'core-instantiate-floor': await coreInstances(run),
  'durable-records-floor': durableWrites(run.server.dataDirectory, TOGETHER * RECORD_BYTES).map(
    (ms) => (TOGETHER / ms) * 1000,
  ),
})

/** Appends blocks to a file, each of which must be durable before the next; the pauses between them do not count. */
function durableWrites(directory: string, bytes: number, pauseMs = 0): number[] {
  const path = join(directory, 'bench-floor')
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const file = openSync(path, 'w', 0o600)
  try {
    const block = randomBytes(bytes)
    return Array.from({ length: WRITES }, () => {
      if (pauseMs > 0) Atomics.wait(never, 0, 0, pauseMs)
      const began = performance.now()
      writeSync(file, block)
      fdatasyncSync(file)
      return performance.now() - began
    })
  } finally {
    closeSync(file)
    rmSync(path)
  }
}

async function coreInstances({ server, subjects }: Run): Promise<number[]> {
  const id = parseComponentId(await server.admit(subjects.wordcount))
  const { cores } = await readArtifact(server.dataDirectory, id)
  const main = cores.toSorted((a, b) => b.bytes.length - a.bytes.length)[0]
  if (main === undefined) throw new Error('the artifact of wordcount has no core module')
  const module = new wasm.Module(main.bytes)
  const imports = stubs(module)
  return Array.from({ length: INSTANCES }, () => {
    const began = performance.now()
    new wasm.Instance(module, imports)
    return performance.now() - began
  })
}

/** Imports that satisfy the linker; wordcount's core imports functions only. */
function stubs(module: CoreModule): Record<string, Record<string, () => number>> {
  const imports: Record<string, Record<string, () => number>> = {}
  for (const { module: from, name, kind } of wasm.Module.imports(module)) {
    if (kind !== 'function') throw new Error(`Cannot stand in for the ${kind} "${name}" that the core imports`)
    imports[from] = { ...imports[from], [name]: () => 0 }
  }
  return imports
}
