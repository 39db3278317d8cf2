// Two real guests in real boxes on one workspace: one swaps directories and links as fast as it can, the other works on
// paths through them. Nothing outside may be read, changed or made.
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { openLab, scripted } from './lab.ts'

const PIECE_MS = 2000
/** Of each: with fewer swaps, or fewer reads beside them, it was no race. */
const LEAST = 100
const OUTSIDE = 'not for guests'

/** What both scripts begin with: jco's rule for errors, and the generator of support/soak.ts. */
const PRELUDE = `
  const { seed, ms } = JSON.parse(invocation.inputJson)
  const root = imports['wasi:filesystem/preopens'].getDirectories()[0][0]
  const attempt = (step) => { try { return step() } catch (e) { if (!Object.hasOwn(e, 'payload')) throw e } }
  const drop = (handle) => handle?.[Symbol.dispose]?.()
  const bytes = (text) => new Uint8Array(Buffer.from(text))
  let state = seed
  const random = (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
  const until = Date.now() + ms
  let turns = 0
`

const SWAPPER = `${PRELUDE}
  const rename = (from, to) => attempt(() => root.renameAt(from, root, to))
  for (; Date.now() < until; turns++) {
    switch (random(5)) {
      case 0: // a directory becomes a link that leads out, and again a directory
        rename('real', 'keep'); rename('evil', 'real'); rename('real', 'evil'); rename('keep', 'real')
        break
      case 1: // a parent moves while a path with ".." is walked beneath it
        rename('deep/a/b', 'b'); rename('b', 'deep/a/b')
        break
      case 2: // a held directory is replaced by a link of its name
        { const held = attempt(() => root.openAt({}, 'real', { directory: true }, { read: true, mutateDirectory: true }))
          rename('real', 'keep'); rename('evil', 'real')
          for (const name of ['secret', '../secret', 'planted']) drop(attempt(() => held?.openAt({ symlinkFollow: true }, name, {}, { read: true })))
          attempt(() => held?.createDirectoryAt('made'))
          attempt(() => held?.removeDirectoryAt('made'))
          rename('real', 'evil'); rename('keep', 'real'); drop(held) }
        break
      case 3: // links of its own, of which those that lead out are refused or lead nowhere
        attempt(() => root.symlinkAt(['../../../outside', '/etc', 'real', '..', 'deep/../../x'][random(5)], 'own'))
        attempt(() => root.unlinkFileAt('own'))
        break
      default:
        rename('real', 'deep/a/real'); rename('deep/a/real', 'real')
    }
  }
  return JSON.stringify({ turns })
`

const WORKER = `${PRELUDE}
  const paths = ['real/secret', 'deep/a/b/../../../real/secret', 'own/secret', 'real/../real/secret', 'deep/a/b/../../../../outside/secret', 'own']
  const counts = { mine: 0, foreign: 0, turns: 0 }
  for (; Date.now() < until; turns++) {
    const path = paths[random(paths.length)]
    const file = attempt(() => root.openAt({ symlinkFollow: true }, path, {}, { read: true }))
    if (file !== undefined) {
      const text = Buffer.from(attempt(() => file.read(100n, 0n))?.[0] ?? []).toString()
      if (text === 'mine') counts.mine++
      else if (text !== '') counts.foreign++
      drop(file)
    }
    switch (random(6)) {
      case 0: {
        const planted = attempt(() => root.openAt({ symlinkFollow: true }, 'real/planted', { create: true }, { write: true }))
        if (planted !== undefined) attempt(() => planted.write(bytes('mine'), 0n))
        drop(planted)
        attempt(() => root.unlinkFileAt('real/planted'))
        break
      }
      case 1: {
        const emptied = attempt(() => root.openAt({ symlinkFollow: true }, 'own/secret', { truncate: true }, { write: true }))
        if (emptied !== undefined) attempt(() => emptied.write(bytes('mine'), 0n))
        drop(emptied)
        break
      }
      case 2:
        attempt(() => root.createDirectoryAt('real/made'))
        attempt(() => root.removeDirectoryAt('real/made'))
        break
      case 3:
        attempt(() => root.renameAt('moved', root, 'real/moved'))
        attempt(() => root.renameAt('real/moved', root, 'moved'))
        break
      case 4:
        attempt(() => root.setTimesAt({ symlinkFollow: true }, 'real/secret', { tag: 'now' }, { tag: 'now' }))
        break
      default: {
        const list = attempt(() => root.openAt({ symlinkFollow: true }, 'real', { directory: true }, { read: true })?.readDirectory())
        for (let entry; (entry = attempt(() => list?.readDirectoryEntry())) !== undefined;)
          if (entry.name.startsWith('outside')) counts.foreign++
        drop(list)
      }
    }
  }
  return JSON.stringify({ ...counts, turns })
`

export type Races = {
  readonly mine: number
  readonly foreign: number
  readonly swaps: number
  readonly outside: string
}

/** Goes on for about `ms`, and until both were at it. `outside`: what the directory that nobody may reach holds afterwards. */
export async function raceFiles(ms: number, random: () => number): Promise<Races> {
  await using lab = await openLab({ warmBoxes: 2, guestFileOps: 0, guestCpuSecs: 0 })
  const root = `${lab.data}/native-workspaces/ses_1/main`
  const outside = `${lab.data}/outside`
  for (const path of [`${root}/real`, `${root}/deep/a/b`, outside]) mkdirSync(path, { recursive: true })
  writeFileSync(`${root}/real/secret`, 'mine')
  writeFileSync(`${root}/moved`, 'mine')
  writeFileSync(`${outside}/secret`, OUTSIDE)
  writeFileSync(`${outside}/outside-only`, OUTSIDE)
  // What an operator or an unpacked archive may have left there.
  symlinkSync('../../../outside', `${root}/evil`)
  const before = describe(outside)
  const [swapper, worker] = [lab.plant(scripted(SWAPPER, '')), lab.plant(scripted(WORKER, ''))]
  const total = { mine: 0, foreign: 0, swaps: 0 }
  const call = async (component: typeof swapper) => {
    const input = JSON.stringify({ seed: Math.floor(random() * 2 ** 31), ms: Math.min(PIECE_MS, ms) })
    const mounts = [{ guest: '/workspace', workspace: 'ses_1/main', write: true } as const]
    const { end } = await lab.call(component, { input, mounts, deadlineInMs: 60_000 })
    if (end.type !== 'returned') throw new Error(`a guest ended with ${JSON.stringify(end)}`)
    return JSON.parse(end.text) as { mine?: number; foreign?: number; turns: number }
  }
  const until = performance.now() + ms
  while (performance.now() < until || Math.min(total.mine, total.swaps) <= LEAST) {
    const [swapped, worked] = await Promise.all([call(swapper), call(worker)])
    total.swaps += swapped.turns
    total.mine += worked.mine ?? 0
    total.foreign += worked.foreign ?? 0
  }
  const after = describe(outside)
  return { ...total, outside: after === before ? 'as it was' : after }
}

/** Everything that reading, writing or making something there could change. */
function describe(directory: string): string {
  return readdirSync(directory)
    .toSorted()
    .map((name) => {
      const { mtimeNs, size } = statSync(`${directory}/${name}`, { bigint: true })
      return `${name} ${size} ${mtimeNs} ${readFileSync(`${directory}/${name}`, 'utf8')}`
    })
    .join('\n')
}
