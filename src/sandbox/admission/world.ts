import { printable, quoted, refusal } from './refusal.ts'
import type { ExternName } from './component-walk.ts'
import type { ComponentRole } from '../sandbox.ts'
import { isToolchainExport, TOOLCHAIN_EXPORTS } from './toolchain-exports.ts'

const BRAIN_VERSION = '0.2.0'

/** What makes a component a tool, or an agentloop (contract 1.2). */
export type World = {
  readonly role: ComponentRole
  /** With its article, as messages name it. */
  readonly called: string
  /** Full name of the world. */
  readonly name: string
  /** Package of the interfaces that are ours. */
  readonly package: string
  /** The one export that it must have, and its type as {@link entryType} writes it. */
  readonly entry: string
  readonly entryType: string
  /** Where such components are sent. */
  readonly route: string
}

export const WORLDS: Readonly<Record<ComponentRole, World>> = {
  tool: {
    role: 'tool',
    called: 'a tool',
    name: `brain:tool/tool@${BRAIN_VERSION}`,
    package: 'brain:tool',
    entry: 'run',
    entryType:
      '(record{input-json:string,configuration-json:string,deadline-at-ms:u64})' +
      '->result<string,record{code:string,message:string}>',
    route: 'POST /v1/tools',
  },
  agentloop: {
    role: 'agentloop',
    called: 'an agentloop',
    name: `brain:agentloop/agentloop@${BRAIN_VERSION}`,
    package: 'brain:agentloop',
    entry: 'turn',
    entryType:
      '(record{input-json:string,transcript-json:string,kv-json:string,events-json:string,configuration-json:string,' +
      'system:string,tools-json:string,runtime:record{logical-time-ms:u64,deterministic-seed:list<u8>}})' +
      '->result<record{result-json:option<string>},record{code:string,message:string,retryable:bool}>',
    route: 'POST /v1/agentloops',
  },
}

const WASI_VERSION = /^0\.2\.\d{1,4}$/

/** What every component may import (contract 6.3, A25); `wasi:sockets` is linked and denies everything. */
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

function faultOfImport({ name, sort }: ExternName, world: World): string | undefined {
  if (sort === 'type' && KEBAB.test(name)) return undefined
  const [, path, version] = INTERFACE.exec(name) ?? []
  if (path === undefined || sort !== 'instance') return `the ${sort} ${quoted(name)}`
  if (path === `${world.package}/host` || path === `${world.package}/types`)
    return version === BRAIN_VERSION ? undefined : quoted(name)
  return WASI_INTERFACES.has(path) && WASI_VERSION.test(version ?? '') ? undefined : quoted(name)
}

const shownSome = (things: readonly string[]): string =>
  things.slice(0, 5).join(', ') + (things.length > 5 ? ', …' : '')

/** The world that a component was built for instead. */
function otherWorld(exports: readonly ExternName[], world: World): World | undefined {
  const others = Object.values(WORLDS).filter((other) => other !== world)
  return others.find(({ entry }) => exports.some(({ name, sort }) => name === entry && sort === 'function'))
}

function checkEntry(exports: readonly ExternName[], world: World): void {
  const { entry: name, called, name: fullName } = world
  const entry = exports.find((one) => one.name === name)
  if (entry?.sort === 'function') return
  const other = entry === undefined ? otherWorld(exports, world) : undefined
  if (other !== undefined)
    throw refusal(
      'wrong_world',
      `it is ${other.called}, not ${called}: it exports "${other.entry}". Send it to ${other.route}`,
    )
  const there = exports.filter(({ sort }) => sort !== 'type').map((one) => quoted(one.name))
  const shown = there.length === 0 ? 'nothing' : shownSome(there)
  const reason =
    entry === undefined
      ? `it has no export "${name}": it exports ${shown}`
      : `its export "${name}" is no function (its sort is "${entry.sort}")`
  throw refusal('wrong_world', `${reason}. Build it for the world ${fullName}`, entry?.offset)
}

function checkExports(exports: readonly ExternName[], world: World): void {
  checkEntry(exports, world)
  if (exports.some(({ name }) => name === THENABLE))
    throw refusal('unsafe_name', `it exports "${THENABLE}", a name that JavaScript gives a meaning. Rename it`)
  const odd = exports.filter(({ name, sort }) => name !== world.entry && !isToolchainExport(name, sort))
  const [first] = odd
  if (first === undefined) return
  const known = TOOLCHAIN_EXPORTS.map(({ name, sort }) => `the ${sort} ${quoted(name)}`).join(', ')
  throw refusal(
    'wrong_world',
    `it exports ${shownSome(odd.map(({ name, sort }) => `the ${sort} ${quoted(name)}`))}. ${capital(world.called)} exports "${world.entry}" and, at ` +
      `most, what toolchains add by themselves: ${known}. Build it for the world ${world.name} and no more`,
    first.offset,
  )
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * Whether a component is of a world and asks for nothing else than such a component may have.
 *
 * @returns the interfaces that it imports, without versions, sorted.
 */
export function checkWorld(
  imports: readonly ExternName[],
  exports: readonly ExternName[],
  world: World,
): readonly string[] {
  checkExports(exports, world)
  const refused = imports.map((one) => faultOfImport(one, world)).filter((fault) => fault !== undefined)
  if (refused.length > 0)
    throw refusal(
      'refused_import',
      `it imports ${shownSome(refused)}, which Brain does not offer. ` +
        `${capital(world.called)} may import ${world.package}/host@${BRAIN_VERSION} and the WASI 0.2 interfaces of cli, clocks, filesystem, ` +
        'http, io, random and sockets',
    )
  const paths = imports.filter(({ sort }) => sort === 'instance').map(({ name }) => name.replace(/@.*$/, ''))
  return [...new Set(paths)].toSorted()
}

/** Refuses an entry of another type. @param type what `entryType` found; undefined is not judged. */
export function checkEntryType(type: string | undefined, world: World): void {
  if (type !== undefined && type !== world.entryType)
    throw refusal(
      'wrong_world',
      `its export "${world.entry}" has the type ${printable(type)}, and the one of the world ${world.name} is ${world.entryType}. ` +
        'Build it for that world',
    )
}
