import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The architecture, as data (design: rooms). Every room but kernel may also import contract and kernel. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  main: ['compose', 'config', 'cli'],
  cli: ['compose', 'config', 'sandbox', 'archive', 'mcp', 'authoring'],
  compose: ['config', 'archive', 'http', 'session', 'turn', 'dispatch', 'bindings', 'sandbox', 'journal', 'model'],
  config: [],
  archive: ['journal'],
  authoring: ['sandbox'],
  http: ['session', 'mcp'],
  mcp: ['session', 'turn'],
  session: ['turn', 'dispatch', 'sandbox', 'journal', 'model'],
  turn: ['dispatch', 'journal', 'model', 'sandbox'],
  dispatch: ['journal'],
  bindings: ['dispatch', 'sandbox'],
  sandbox: [],
  journal: [],
  model: [],
  sdk: [],
  contract: [],
  kernel: [],
}

/** Folders behind a port: only compose reaches into them, and each reaches only itself and its room's top. */
const ADAPTERS = [
  'src/journal/sqlite/',
  'src/journal/memory/',
  'src/model/scripted/',
  'src/model/remote/',
  'src/bindings/component/',
  'src/bindings/host/',
  'src/bindings/tool-service/',
  'src/dispatch/schemas/',
  'src/turn/loops/builtin/',
  'src/turn/loops/component/',
  'src/sandbox/admission/',
  'src/sandbox/supervisor/',
  'src/sandbox/box/',
  'src/sandbox/launch/',
  'src/sandbox/client/',
  'src/sandbox/wire/',
]

const roomOf = (path: string): string => path.split('/')[1]?.replace(/\.ts$/, '') ?? ''
const IMPORT = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g

/** What is wrong with one import, or nothing. */
function fault(file: string, target: string): string | undefined {
  const from = roomOf(file)
  const path = posix.join(posix.dirname(file), target)
  if (!path.startsWith('src/')) return `${file} must not import ${path}: it is not part of the server`
  const to = roomOf(path)
  const free = from === 'kernel' ? ['kernel'] : [from, 'contract', 'kernel']
  const allowed = MAY_IMPORT[from]
  if (allowed === undefined) return `${file}: there is no room "${from}" in the map`
  if (!free.includes(to) && !allowed.includes(to))
    return `${file} must not import ${path}: "${from}" may not use "${to}"`
  const adapter = ADAPTERS.find((folder) => path.startsWith(folder))
  const isInside = adapter === undefined || from === 'compose' || to === from
  return isInside ? undefined : `${file} must not import ${path}: only compose reaches into ${adapter}`
}

const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORT)].flatMap((match) => match[1] ?? [])

describe('rooms', () => {
  const files = globSync('src/**/*.ts').map((file) => file.split('\\').join('/'))

  it('import only what the map allows', () => {
    expect(files.length).toBeGreaterThan(20)
    const faults = files.flatMap((file) => importsOf(file).flatMap((target) => fault(file, target) ?? []))
    expect(faults).toEqual([])
  })

  it('each stand in the map, and the map names no room that is empty', () => {
    const rooms = new Set(files.map(roomOf))
    expect([...rooms].filter((room) => MAY_IMPORT[room] === undefined)).toEqual([])
    expect(Object.keys(MAY_IMPORT).filter((room) => !rooms.has(room))).toEqual([])
  })

  it.each([
    ['src/http/routes/x.ts', '../../journal/journal.ts'],
    ['src/session/x.ts', '../journal/sqlite/sqlite-journal.ts'],
    ['src/kernel/x.ts', '../contract/outcome.ts'],
    ['src/sandbox/x.ts', '../journal/journal.ts'],
    ['src/bindings/component/x.ts', '../../sandbox/supervisor/pool.ts'],
    ['src/nowhere/x.ts', './y.ts'],
    ['src/cli/x.ts', '../../examples-typescript/build.mjs'],
  ])('refuse a planted import: %s of %s', (file, target) => {
    expect(fault(file, target)).toBeDefined()
  })

  it('keep reading process.env to main, cli and tests', () => {
    // A box takes the environment away from its guests, which is not reading it; and hostile text tries to.
    const ours = files.filter((file) => file !== 'src/sandbox/audit/attempts.ts')
    const readers = ours.filter((file) => /process\.env(?! = )/.test(readFileSync(file, 'utf8')))
    expect(readers.filter((file) => file !== 'src/main.ts' && !file.startsWith('src/cli/'))).toEqual([])
  })
})
