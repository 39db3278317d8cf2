// The walls of a box at level bubblewrap: a root of a few read-only files in namespaces of its own. bwrap starts the
// launcher in there, which does the rest as it does everywhere.
import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ownLibraries } from './own-libraries.ts'

/** Where a box finds Node: the path of ours would say where it is installed. */
export const BOXED_NODE = '/node'

const LOADER_CACHE = '/etc/ld.so.cache'
const LOADER_DIRECTORIES = ['/lib', '/lib64']

const NAMESPACES = ['ipc', 'pid', 'net', 'uts', 'cgroup-try'].map((name) => `--unshare-${name}`)

/** What bwrap is told before the command that it starts. */
export function bubblewrapArgs(isRoot: boolean): readonly string[] {
  return [
    ...NAMESPACES,
    '--cap-drop',
    'ALL',
    // Root needs no user namespace, and without one the box can be another user than the server.
    ...(isRoot ? ['--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID'] : ['--unshare-user']),
    // bwrap stays as process 1: its death, which follows ours, is the end of everything in there. The death signal of a
    // box that changed its user would not be sent, since bwrap has no right to signal others.
    '--die-with-parent',
    '--new-session',
    '--clearenv',
    '--hostname',
    'box',
    ...rootOfBox(),
    '--remount-ro',
    '/',
    '--chdir',
    '/',
    '--',
    BOXED_NODE,
  ]
}

let root: readonly string[] | undefined

/** Node, the libraries that it runs on under every name by which they are looked up, and the loader's list of them. */
function rootOfBox(): readonly string[] {
  root ??= makeRoot()
  return root
}

function makeRoot(): readonly string[] {
  const libraries = ownLibraries()
  const files = [...libraries, ...(existsSync(LOADER_CACHE) ? [LOADER_CACHE] : [])]
  const links = libraries.flatMap((file) => namesOf(file).map((name) => [file, name] as const))
  const directories = new Set([...files, ...links.map(([, name]) => name)].flatMap((path) => parentsOf(path)))
  return [
    // Made by themselves they would be open to their owner alone, and a box of root's is another user.
    ...[...directories].toSorted().flatMap((directory) => ['--perms', '0755', '--dir', directory]),
    '--ro-bind',
    process.execPath,
    BOXED_NODE,
    ...files.flatMap((file) => ['--ro-bind', file, file]),
    ...links.flatMap(([file, name]) => ['--symlink', file, name]),
  ]
}

function parentsOf(path: string): readonly string[] {
  const directory = dirname(path)
  return directory === '/' ? [] : [...parentsOf(directory), directory]
}

/** Other paths of a library: the loader knows it by its short name, Node its loader by a path without /usr. */
function namesOf(file: string): readonly string[] {
  const directory = dirname(file)
  const stem = basename(file).split('.so')[0] ?? ''
  const names = readdirSync(directory).filter((name) => name.startsWith(`${stem}.so`))
  const directories = new Set([directory, directory.replace(/^\/usr(?=\/)/, ''), ...LOADER_DIRECTORIES])
  return [...directories]
    .flatMap((place) => names.map((name) => join(place, name)))
    .filter((path) => path !== file && isSameFile(path, file))
}

function isSameFile(path: string, file: string): boolean {
  try {
    return realpathSync(path) === file
  } catch {
    return false
  }
}

/** @returns the process in the box of this bwrap, once it has said something: the only child of its only child */
export function boxedBy(bwrap: number): number | undefined {
  const first = childOf(bwrap)
  return first === undefined ? undefined : childOf(first)
}

/**
 * Kills bwrap and what it started. Alone it leaves a child behind that waits for it for ever, where it is killed between
 * making that child and telling it to go on.
 */
export function killWrapped(bwrap: ChildProcess): void {
  // From here on it makes no child; one that it has is not given away before bwrap, its parent, goes.
  if (bwrap.pid === undefined || !bwrap.kill('SIGSTOP')) return
  const first = childOf(bwrap.pid)
  if (first !== undefined) {
    // The box ends with process 1 of its namespace, but only once that was scheduled: itself it is quicker.
    const boxed = send(first, 'SIGSTOP') ? childOf(first) : undefined
    if (boxed !== undefined) send(boxed, 'SIGKILL')
    send(first, 'SIGKILL')
  }
  bwrap.kill('SIGKILL')
}

/** @returns whether it was there */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false // It has ended by itself.
  }
}

function childOf(pid: number): number | undefined {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ')
    return child === undefined || child === '' ? undefined : Number(child)
  } catch {
    return searchForChild(pid)
  }
}

/** For kernels that do not list children. */
const searchForChild = (parent: number): number | undefined =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => parentOf(pid) === parent)

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined // It has ended.
  }
}
