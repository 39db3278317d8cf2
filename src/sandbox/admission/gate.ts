import { BinaryReader } from './binary-reader.ts'
import { ComponentWalk } from './component-walk.ts'
import { isComponent, isCoreModule, isWasm } from './core-module.ts'
import { entryType } from './entry-type.ts'
import { refusal } from './refusal.ts'
import type { ComponentRole } from '../sandbox.ts'
import { checkEntryType, checkWorld, WORLDS } from './world.ts'

const MAX_MODULES = 64
const MAX_DEPTH = 8
const METADATA_SECTION = 'brain:tool-metadata'

export type GateLimits = { readonly coreInstances: number }

/** What the server itself read in an upload. Nothing that the generator says replaces it. */
export type Gated = {
  /** Interfaces without versions, sorted. */
  readonly imports: readonly string[]
  /** Content of the metadata section that counts: the outermost component's, else the first one further in. */
  readonly metadata: Uint8Array | undefined
  /** Where the core modules lie in the upload. */
  readonly modules: readonly { readonly offset: number; readonly size: number }[]
}

function checkKind(bytes: Uint8Array): void {
  if (bytes.length === 0) throw refusal('empty', 'the body is empty. Send the bytes of a component')
  if (!isWasm(bytes))
    throw refusal('not_wasm', 'it is not WebAssembly. Send the .wasm file of a component, not its source or an archive')
  if (isCoreModule(bytes))
    throw refusal(
      'core_module',
      'it is a core module, not a component. Build it with a target that makes components (wasm32-wasip2), or wrap it ' +
        'with "wasm-tools component new"',
    )
  if (!isComponent(bytes))
    throw refusal(
      'malformed',
      'it is malformed at byte 4: WebAssembly of an unknown version, or cut off. Build it with a current toolchain',
      4,
    )
}

/**
 * Judges an upload without running or compiling anything of it: a pure function, linear in its size, that answers or
 * refuses for any bytes whatever (design 2, sandbox 7.1).
 *
 * @param role what it is sent as; default: a tool.
 * @throws BrainError `invalid_request` that tells the faults apart (`details.fault`).
 */
export function gate(bytes: Uint8Array, limits: GateLimits, role: ComponentRole = 'tool'): Gated {
  checkKind(bytes)
  const walk = new ComponentWalk({ modules: MAX_MODULES, instances: limits.coreInstances, depth: MAX_DEPTH })
  const facts = walk.walk(new BinaryReader(bytes, 0, bytes.length))
  const world = WORLDS[role]
  const imports = checkWorld(facts.imports, facts.exports, world)
  checkEntryType(entryType(bytes, world.entry), world)
  const sections = facts.custom.filter(({ name }) => name === METADATA_SECTION)
  const metadata = sections.find(({ depth }) => depth === 0) ?? sections[0]
  return { imports, metadata: metadata?.content, modules: facts.modules }
}
