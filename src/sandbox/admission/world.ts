import { printable, quoted, refusal } from './refusal.ts'
import type { ExternName } from './component-walk.ts'
import { isToolchainExport, TOOLCHAIN_EXPORTS } from './toolchain-exports.ts'

/** The world that a tool is built for, as messages name it. */
export const TOOL_WORLD = 'brain:tool/tool@0.2.0'
/** The export that makes a component a tool (contract 1.2), and its type as {@link entryType} writes it. */
export const ENTRY = 'run'
const ENTRY_TYPE =
  '(record{input-json:string,configuration-json:string,deadline-at-ms:u64})' +
  '->result<string,record{code:string,message:string}>'

const BRAIN_VERSION = '0.2.0'
const WASI_VERSION = /^0\.2\.\d{1,4}$/

/** What a tool may import (contract 6.3, A25); `wasi:sockets` is linked and denies everything. */
const BRAIN_INTERFACES = new Set(['brain:tool/host', 'brain:tool/types'])
const WASI_INTERFACES = new Set(
  Object.entries({
    cli:
      'environment exit stdin stdout stderr ' +
      'terminal-input terminal-output terminal-stdin terminal-stdout terminal-stderr',
    clocks: 'monotonic-clock wall-clock',
    filesystem: 'preopens types',
    http: 'outgoing-handler types',
    io: 'error poll streams',
    random: 'insecure insecure-seed random',
    sockets: 'instance-network ip-name-lookup network tcp tcp-create-socket udp udp-create-socket',
  }).flatMap(([name, interfaces]) => interfaces.split(' ').map((one) => `wasi:${name}/${one}`)),
)

const KEBAB = /^(?:[a-z][0-9a-z]*|[A-Z][0-9A-Z]*)(?:-(?:[0-9a-z]+|[0-9A-Z]+))*$/
const INTERFACE = /^([a-z][a-z0-9-]*:[a-z][a-z0-9-]*\/[a-z][a-z0-9-]*)(?:@([0-9A-Za-z.+-]{1,64}))?$/

/** An export of this name would make the instance a thenable that never settles (sandbox J5). */
const THENABLE = 'then'

function faultOfImport({ name, sort }: ExternName): string | undefined {
  if (sort === 'type' && KEBAB.test(name)) return undefined
  const [, path, version] = INTERFACE.exec(name) ?? []
  if (path === undefined || sort !== 'instance') return `the ${sort} ${quoted(name)}`
  if (BRAIN_INTERFACES.has(path)) return version === BRAIN_VERSION ? undefined : quoted(name)
  return WASI_INTERFACES.has(path) && WASI_VERSION.test(version ?? '') ? undefined : quoted(name)
}

const shownSome = (things: readonly string[]): string =>
  things.slice(0, 5).join(', ') + (things.length > 5 ? ', …' : '')

function checkEntry(exports: readonly ExternName[]): void {
  const entry = exports.find(({ name }) => name === ENTRY)
  if (entry?.sort === 'function') return
  const there = exports.filter(({ sort }) => sort !== 'type').map(({ name }) => quoted(name))
  const shown = there.length === 0 ? 'nothing' : shownSome(there)
  const reason =
    entry === undefined
      ? `it has no export "${ENTRY}": it exports ${shown}`
      : `its export "${ENTRY}" is no function (its sort is "${entry.sort}")`
  throw refusal('wrong_world', `${reason}. Build it for the world ${TOOL_WORLD}`, entry?.offset)
}

function checkExports(exports: readonly ExternName[]): void {
  checkEntry(exports)
  if (exports.some(({ name }) => name === THENABLE))
    throw refusal('unsafe_name', `it exports "${THENABLE}", a name that JavaScript gives a meaning. Rename it`)
  const odd = exports.filter(({ name, sort }) => name !== ENTRY && !isToolchainExport(name, sort))
  const [first] = odd
  if (first === undefined) return
  const known = TOOLCHAIN_EXPORTS.map(({ name, sort }) => `the ${sort} ${quoted(name)}`).join(', ')
  throw refusal(
    'wrong_world',
    `it exports ${shownSome(odd.map(({ name, sort }) => `the ${sort} ${quoted(name)}`))}. A tool exports "${ENTRY}" and, at ` +
      `most, what toolchains add by themselves: ${known}. Build it for the world ${TOOL_WORLD} and no more`,
    first.offset,
  )
}

/**
 * Whether a component is a tool that asks for nothing else than a tool may have.
 *
 * @returns the interfaces that it imports, without versions, sorted.
 */
export function checkWorld(imports: readonly ExternName[], exports: readonly ExternName[]): readonly string[] {
  checkExports(exports)
  const refused = imports.map(faultOfImport).filter((fault) => fault !== undefined)
  if (refused.length > 0)
    throw refusal(
      'refused_import',
      `it imports ${shownSome(refused)}, which Brain does not offer. ` +
        `A tool may import brain:tool/host@${BRAIN_VERSION} and the WASI 0.2 interfaces of cli, clocks, filesystem, ` +
        'http, io, random and sockets',
    )
  const paths = imports.filter(({ sort }) => sort === 'instance').map(({ name }) => name.replace(/@.*$/, ''))
  return [...new Set(paths)].toSorted()
}

/** Refuses an export `run` of another world. @param type what `entryType` found; undefined is not judged. */
export function checkEntryType(type: string | undefined): void {
  if (type !== undefined && type !== ENTRY_TYPE)
    throw refusal(
      'wrong_world',
      `its export "${ENTRY}" has the type ${printable(type)}, and the one of the world ${TOOL_WORLD} is ${ENTRY_TYPE}. ` +
        'Build it for that world',
    )
}
