import { closeSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import type { Limits } from '../../../contract/limits.ts'
import { BrainError, messageOf } from '../../../kernel/errors.ts'
import type { Mount } from '../../sandbox.ts'
import type { BrokerMount } from './broker.ts'
import { countTree } from './count-tree.ts'
import { makeOurs, openDataDirectory, openOurs } from './data-directory.ts'
import { Quota } from './quota.ts'
import { chooseResolve, type Resolve } from './resolve.ts'
import { SecretsDirectory } from './secrets.ts'
import * as system from './system.ts'
import { Trash } from './trash.ts'
import { Tree } from './tree.ts'
import { TreeDirectory } from './tree-directory.ts'

/** Names of our directories beneath the data directory. */
const PLACES = {
  workspaces: 'native-workspaces',
  /** One directory per running invocation. */
  scratch: 'scratch',
  /** Uploads that are not complete; beside the workspaces, so that a rename puts them in place, and out of their sight. */
  incoming: 'incoming',
  trash: 'trash',
} as const

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\/[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** Workspaces that nobody uses and whose counters are remembered, so that they are not counted again. */
const IDLE_WORKSPACES = 128

export type WorkspaceLimits = Pick<Limits, 'workspaceBytes' | 'workspaceEntries' | 'scratchBytes'>

export type WorkspacesOptions = {
  readonly resolve?: Resolve
  /** Directories of somebody else that are the workspaces of environments of that name. They are never removed. */
  readonly borrowed?: Readonly<Record<string, string>>
}

/** One workspace while it is in use: its directory, and the counters that all its users share. */
export type Workspace = {
  readonly name: string
  readonly fd: number
  readonly tree: Tree
}

type OpenDirectory = (parent: number, name: string) => number | undefined

type Held = Workspace & { users: number }

const duplicate = (fd: number): number => system.openAt(fd, '.', system.O_PATH | system.O_DIRECTORY)

/**
 * The workspaces of a data directory, and the scratch directories beside them. Everything is opened beneath held
 * descriptors; a link in place of a directory of ours is refused.
 */
export class Workspaces {
  readonly limits: WorkspaceLimits
  readonly #resolve: Resolve
  readonly #places: Readonly<Record<keyof typeof PLACES, number>>
  readonly #trash: Trash
  readonly #held = new Map<string, Held>()
  readonly #borrowed: ReadonlyMap<string, string>

  /**
   * Takes over a data directory. What an earlier supervisor left of scratch directories and uploads is deleted.
   *
   * @throws BrainError `internal`
   */
  constructor(
    dataDirectory: string,
    limits: WorkspaceLimits,
    { resolve = chooseResolve(), borrowed = {} }: WorkspacesOptions = {},
  ) {
    this.limits = limits
    this.#resolve = resolve
    this.#borrowed = new Map(Object.entries(borrowed))
    try {
      const data = openDataDirectory(dataDirectory)
      const trash = makeOurs(data, PLACES.trash)
      for (const place of [PLACES.scratch, PLACES.incoming]) discardLeftovers(data, place, trash)
      this.#places = {
        workspaces: makeOurs(data, PLACES.workspaces),
        scratch: makeOurs(data, PLACES.scratch),
        incoming: makeOurs(data, PLACES.incoming),
        trash,
      }
      closeSync(data)
      this.#trash = new Trash(trash)
    } catch (cause) {
      throw new BrainError('internal', `Cannot open the data directory "${dataDirectory}": ${messageOf(cause)}`, {
        cause,
      })
    }
  }

  /** Where uploads are written before they take their place. */
  get incoming(): number {
    return this.#places.incoming
  }

  /**
   * Uses a workspace, making it first where it is not there. Give it back with `release`.
   *
   * @throws BrainError `invalid_request` for a name that is none, `internal`
   */
  use(name: string): Workspace {
    return this.#use(name, makeOurs) ?? this.#failed(name, 'it vanished')
  }

  /** Uses a workspace that is there. @throws BrainError as `use` */
  find(name: string): Workspace | undefined {
    return this.#use(name, openOurs)
  }

  #use(name: string, open: OpenDirectory): Workspace | undefined {
    const held = this.#held.get(name) ?? this.#open(name, open)
    if (held === undefined) return undefined
    held.users++
    // Last in the order: the workspaces that nobody used for longest are given up first.
    this.#held.delete(name)
    this.#held.set(name, held)
    return held
  }

  #open(name: string, open: OpenDirectory): Held | undefined {
    const [session, environment] = partsOf(name)
    const borrowed = this.#borrowed.get(environment)
    let fd: number | undefined
    try {
      fd = borrowed === undefined ? this.#openOwn(session, environment, open) : openDataDirectory(borrowed)
      if (fd === undefined) return undefined
      const { workspaceBytes, workspaceEntries } = this.limits
      const quota = new Quota({ bytes: workspaceBytes, entries: workspaceEntries })
      const { bytes, entries } = countTree(fd)
      quota.count(bytes, entries)
      return { name, fd, tree: new Tree(quota, this.#resolve), users: 0 }
    } catch (cause) {
      if (fd !== undefined) closeSync(fd)
      return this.#failed(name, messageOf(cause), cause)
    }
  }

  #openOwn(session: string, environment: string, open: OpenDirectory): number | undefined {
    const parent = open(this.#places.workspaces, session)
    if (parent === undefined) return undefined
    try {
      return open(parent, environment)
    } finally {
      closeSync(parent)
    }
  }

  #failed(name: string, reason: string, cause?: unknown): never {
    throw new BrainError('internal', `Cannot open workspace "${name}": ${reason}`, { cause })
  }

  release(workspace: Workspace): void {
    const held = this.#held.get(workspace.name)
    if (held !== workspace) return this.#releaseDestroyed(workspace)
    held.users--
    if (this.#held.size <= IDLE_WORKSPACES) return
    for (const other of this.#held.values()) {
      if (other.users > 0) continue
      this.#held.delete(other.name)
      closeSync(other.fd)
      return
    }
  }

  readonly #destroyed = new Set<Held>()

  #releaseDestroyed(workspace: Workspace): void {
    for (const held of this.#destroyed) {
      if (held !== workspace || --held.users > 0) continue
      this.#destroyed.delete(held)
      closeSync(held.fd)
    }
  }

  /** Whether a workspace in use still has its place; a destroyed one must not be written into. */
  isLive(workspace: Workspace): boolean {
    return this.#held.get(workspace.name) === workspace
  }

  /** Removes a workspace. Calls that hold it keep what they hold, and nobody else finds it. @throws BrainError `internal` */
  async destroy(name: string): Promise<void> {
    const [session, environment] = partsOf(name)
    const held = this.#held.get(name)
    this.#held.delete(name)
    if (held !== undefined && held.users > 0) this.#destroyed.add(held)
    else if (held !== undefined) closeSync(held.fd)
    const parent = openOurs(this.#places.workspaces, session)
    if (parent === undefined) return
    try {
      const done =
        system.statAt(parent, environment) === undefined ? undefined : this.#trash.discard(parent, environment)
      removeIfEmpty(this.#places.workspaces, session)
      await done
    } finally {
      closeSync(parent)
    }
  }

  /**
   * What one invocation is granted, in the order in which the box is told their names: `FileBroker` numbers them so.
   *
   * @param nowMs becomes the time of the secrets' files.
   * @throws BrainError `internal`
   */
  openMounts(
    mounts: readonly Mount[],
    secrets: Readonly<Record<string, string>>,
    nowMs: number,
  ): readonly BrokerMount[] {
    const opened: BrokerMount[] = []
    try {
      for (const mount of mounts)
        opened.push(mount.guest === '/workspace' ? this.#mount(mount) : this.#mountScratch(mount.write))
    } catch (error) {
      for (const { directory, release } of opened) {
        directory.close()
        release?.()
      }
      throw error
    }
    if (Object.keys(secrets).length > 0)
      opened.push({ guest: '/secrets', directory: new SecretsDirectory(secrets, nowMs) })
    return opened
  }

  #mount({ guest, workspace: name, write }: Extract<Mount, { guest: '/workspace' }>): BrokerMount {
    const workspace = this.use(name)
    return {
      guest,
      directory: new TreeDirectory(duplicate(workspace.fd), workspace.tree, write),
      release: () => this.release(workspace),
    }
  }

  #mountScratch(write: boolean): BrokerMount {
    const name = randomUUID()
    const { scratchBytes, workspaceEntries } = this.limits
    const tree = new Tree(new Quota({ bytes: scratchBytes, entries: workspaceEntries }), this.#resolve)
    return {
      guest: '/scratch',
      directory: new TreeDirectory(makeOurs(this.#places.scratch, name), tree, write),
      release: () => void this.#trash.discard(this.#places.scratch, name),
    }
  }

  /** Resolves when everything that was destroyed or used up is deleted. */
  get settled(): Promise<void> {
    return this.#trash.settled
  }

  /** Lets go of all directories. Nothing may be in use. */
  close(): void {
    for (const held of [...this.#held.values(), ...this.#destroyed]) closeSync(held.fd)
    this.#held.clear()
    this.#destroyed.clear()
    for (const fd of Object.values(this.#places)) closeSync(fd)
  }
}

function partsOf(name: string): readonly [session: string, environment: string] {
  const cut = name.indexOf('/')
  if (!NAME.test(name))
    throw new BrainError('invalid_request', `Cannot open workspace ${JSON.stringify(name.slice(0, 300))}: no such name`)
  return [name.slice(0, cut), name.slice(cut + 1)]
}

function discardLeftovers(data: number, place: string, trash: number): void {
  const left = openOurs(data, place)
  if (left === undefined) return
  closeSync(left)
  system.renameAt({ fd: data, name: place }, { fd: trash, name: randomUUID() })
}

function removeIfEmpty(parent: number, name: string): void {
  try {
    system.removeDirectoryAt(parent, name)
  } catch {
    // Another environment of the session still has its workspace there.
  }
}
