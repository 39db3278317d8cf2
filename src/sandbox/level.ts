import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../kernel/errors.ts'
import { loadScripts } from './bundle.ts'
import { landlockAbi } from './launch/landlock.ts'
import { trialBox } from './launch/trial-box.ts'
import { canCallSystem } from './native.ts'
import type { SandboxLevel } from './sandbox.ts'

/** What a kernel of this landlock ABI or later adds; seccomp stands in for it on older ones. */
const ADDED_BY_ABI: readonly (readonly [abi: number, what: string])[] = [
  [2, 'moving files between directories'],
  [3, 'truncating files'],
  [4, 'TCP'],
  [6, 'signals and abstract sockets'],
]

/** Where programs are looked for when nobody says: the places of distributions. */
const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin'
const VERSION_MS = 10_000

export type ProbeOptions = {
  /** The operator set BRAIN_ENV_UNSAFE=1; counts only where there is no level. Default false. */
  readonly unsafe?: boolean
  /** Directories in which `bwrap` is looked for, as in PATH. Default: those of distributions. */
  readonly searchPath?: string | undefined
}

/** A level, and why this machine does not offer it. */
export type LevelProbe = {
  readonly name: 'bubblewrap' | 'landlock'
  /** It works: a box was started on it. */
  readonly level?: SandboxLevel
  /** It does not: in words for an operator. */
  readonly reason?: string
}

/** The best level that this machine offers to boxes (design 5): a box was started on it. */
export async function probeLevel({ unsafe = false, searchPath }: ProbeOptions = {}): Promise<SandboxLevel> {
  const reasons: string[] = []
  for (const probe of PROBES) {
    const { level, reason } = await probe(searchPath)
    if (level !== undefined) return { ...level, remarks: [...level.remarks, ...reasons] }
    if (reason !== undefined) reasons.push(reason)
  }
  return { name: 'none', landlockAbi: 0, remarks: [...new Set(reasons)], unsafe }
}

/** Every level in turn, the best one first. */
export const probeLevels = (searchPath?: string): Promise<readonly LevelProbe[]> =>
  Promise.all(PROBES.map((probe) => probe(searchPath)))

const PROBES: readonly ((searchPath?: string) => Promise<LevelProbe>)[] = [probeBubblewrap, probeLandlock]

async function probeBubblewrap(searchPath = USUAL_PATH): Promise<LevelProbe> {
  const name = 'bubblewrap'
  if (!canCallSystem()) return { name, reason: unknownSystem() }
  const path = findProgram('bwrap', searchPath)
  if (path === undefined) return { name, reason: 'bubblewrap is not used: there is no bwrap on the PATH' }
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { env: {}, timeout: VERSION_MS })
    const version = stdout.replace('bubblewrap', '').trim().slice(0, 40)
    const abi = landlockAbi()
    const remarks = abi < 1 ? ['the kernel has no landlock: namespaces and seccomp stand alone'] : reducedBy(abi)
    return await tried({ name, bubblewrap: { path, version }, landlockAbi: abi, remarks, unsafe: false })
  } catch (error) {
    return { name, reason: `bubblewrap is not used: ${messageOf(error)}` }
  }
}

async function probeLandlock(): Promise<LevelProbe> {
  const name = 'landlock'
  if (!canCallSystem()) return { name, reason: unknownSystem() }
  const abi = landlockAbi()
  if (abi < 1)
    return {
      name,
      reason: 'the kernel has no landlock: it needs Linux 5.13 or later with "landlock" in /sys/kernel/security/lsm',
    }
  return tried({ name, landlockAbi: abi, remarks: reducedBy(abi), unsafe: false })
}

/** A level counts when a box comes up on it: programs may be there and be forbidden what they need. */
async function tried(level: SandboxLevel & Pick<LevelProbe, 'name'>): Promise<LevelProbe> {
  const { name } = level
  const { launcher } = await loadScripts()
  const failure = await trialBox(level, launcher)
  return failure === undefined ? { name, level } : { name, reason: `${name} is not used: no box starts (${failure})` }
}

const reducedBy = (abi: number): readonly string[] => {
  const missing = ADDED_BY_ABI.filter(([since]) => abi < since).map(([, what]) => what)
  return missing.length === 0
    ? []
    : [`landlock ABI ${abi} does not cover ${missing.join(', ')}: seccomp alone denies it`]
}

const unknownSystem = (): string =>
  `boxes need Linux on x64 or arm64 and a Node with node:ffi (this is ${process.platform} ${process.arch}, Node ${process.version})`

/** @returns its absolute path */
export function findProgram(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(':')
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, name))
    .find((path) => isExecutable(path))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
