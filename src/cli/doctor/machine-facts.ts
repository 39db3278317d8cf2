import { constants, accessSync, lstatSync, readFileSync, statfsSync } from 'node:fs'
import { release } from 'node:os'
import { dirname, resolve } from 'node:path'
import { type LevelProbe, probeLevels } from '../../sandbox/level.ts'

/** What the doctor looked at; what could not be read is undefined. */
export type MachineFacts = {
  readonly platform: string
  readonly kernel: string
  readonly nodeVersion: string
  readonly isRoot: boolean
  readonly osRelease: string
  /** Linux security modules that are on, comma-separated. */
  readonly securityModules: string | undefined
  /** What a seccomp filter may answer. */
  readonly seccompActions: string | undefined
  readonly maxUserNamespaces: string | undefined
  /** Debian's switch: 0 = users may not make user namespaces. */
  readonly unprivilegedUserns: string | undefined
  /** Ubuntu's switch: 1 = only programs with an AppArmor profile may. */
  readonly apparmorUserns: string | undefined
  readonly levels: readonly LevelProbe[]
  readonly dataDirectory: DirectoryFacts
}

export type DirectoryFacts = {
  readonly path: string
  readonly state: 'usable' | 'not there yet' | 'a symbolic link' | 'not a directory' | 'not writable'
  readonly freeBytes: number | undefined
}

export async function readMachineFacts(dataDirectory: string, searchPath: string | undefined): Promise<MachineFacts> {
  return {
    platform: `${process.platform} ${process.arch}`,
    kernel: release(),
    nodeVersion: process.versions.node,
    isRoot: process.getuid?.() === 0,
    osRelease: read('/etc/os-release') ?? '',
    securityModules: read('/sys/kernel/security/lsm'),
    seccompActions: read('/proc/sys/kernel/seccomp/actions_avail'),
    maxUserNamespaces: read('/proc/sys/user/max_user_namespaces'),
    unprivilegedUserns: read('/proc/sys/kernel/unprivileged_userns_clone'),
    apparmorUserns: read('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
    levels: await probeLevels(searchPath),
    dataDirectory: readDirectory(resolve(dataDirectory)),
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

function readDirectory(path: string): DirectoryFacts {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // One that is not there is made: the nearest parent that is there says whether it can be.
  if (stats === undefined) {
    const parent = nearestParent(path)
    return { path, state: isWritable(parent) ? 'not there yet' : 'not writable', freeBytes: freeBytes(parent) }
  }
  if (stats.isSymbolicLink()) return { path, state: 'a symbolic link', freeBytes: undefined }
  if (!stats.isDirectory()) return { path, state: 'not a directory', freeBytes: undefined }
  return { path, state: isWritable(path) ? 'usable' : 'not writable', freeBytes: freeBytes(path) }
}

const nearestParent = (path: string): string => {
  const parent = dirname(path)
  return lstatSync(parent, { throwIfNoEntry: false }) === undefined ? nearestParent(parent) : parent
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function freeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    return undefined
  }
}
