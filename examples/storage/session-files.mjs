import { createHash, randomUUID } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { constants } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { ToolFailure } from '../tool-service.mjs'

/** One name of a path: no separator, nothing that a file system or a terminal reads in its own way, no `.` at the start. */
const NAME = /^[\p{L}\p{N}_-][\p{L}\p{N} ._-]{0,99}$/u
const MAX_DEPTH = 8
/** What file systems take: a letter may have four bytes. */
const MAX_NAME_BYTES = 255

/** Of each session. */
const MAX_FILES = 200
const MAX_FILE_BYTES = 256 * 1024
const MAX_BYTES = 4 * 1024 * 1024
/** Of all: what a service keeps for others has a bound, and whoever runs it clears up. */
const MAX_SESSIONS = 1000

/**
 * The files of sessions, each session's in a folder of its own.
 *
 * F1  Which folder it is follows from what Brain says of the call, and from nothing that the model says.
 * F2  No path leads out of it: not by its words, and not by a link that somebody put there.
 * F3  A session has at most 200 files of 256 KiB, 4 MiB in all, also when it writes many at once.
 */
export class SessionFiles {
  #root
  /** The last write of each session that is under way: quotas are counted by one at a time. */
  #writing = new Map()

  /** @param {string} root a folder of this service alone */
  constructor(root) {
    this.#root = root
  }

  /** The tool `write_file`. */
  write = async (call) => {
    const folder = this.#folderOf(call)
    const before = this.#writing.get(folder)
    const written = (async () => {
      await before?.catch(() => undefined)
      await this.#write(folder, call.arguments)
    })()
    this.#writing.set(folder, written)
    try {
      await written
    } finally {
      if (this.#writing.get(folder) === written) this.#writing.delete(folder)
    }
    const bytes = Buffer.byteLength(call.arguments.text)
    return { content: [{ type: 'text', text: `Wrote ${bytes} bytes to ${call.arguments.path}.` }] }
  }

  /** The tool `read_file`. */
  read = async (call) => {
    const folder = this.#folderOf(call)
    const file = await inside(folder, call.arguments.path)
    // Not waiting for a writer either, should somebody have put a pipe there.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const handle = await open(file, flags).catch(() => {
      throw new ToolFailure(`There is no file ${JSON.stringify(call.arguments.path)}`)
    })
    try {
      const found = await handle.stat()
      if (!found.isFile()) throw new ToolFailure(`${JSON.stringify(call.arguments.path)} is no file`)
      if (found.size > MAX_FILE_BYTES) throw new ToolFailure('The file is too large')
      return { structured_content: { text: await handle.readFile('utf8') } }
    } finally {
      await handle.close()
    }
  }

  /** The tool `list_files`. */
  list = async (call) => {
    const files = await filesOf(this.#folderOf(call))
    return { structured_content: { files } }
  }

  async #write(folder, { path, text }) {
    const bytes = Buffer.from(text)
    if (bytes.length > MAX_FILE_BYTES) throw new ToolFailure(`A file has at most ${MAX_FILE_BYTES} bytes`)
    const file = await inside(folder, path)
    const others = (await filesOf(folder)).filter((one) => one.path !== path)
    const total = others.reduce((sum, one) => sum + one.bytes, bytes.length)
    if (others.length >= MAX_FILES) throw new ToolFailure(`A session has at most ${MAX_FILES} files`)
    if (total > MAX_BYTES) throw new ToolFailure(`The files of a session have at most ${MAX_BYTES} bytes`)
    await this.#admit(folder)
    // Whole or not at all, whoever reads meanwhile.
    const aside = join(this.#root, `.new-${randomUUID()}`)
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await writeFile(aside, bytes, { flag: 'wx', mode: 0o600 })
      await rename(aside, file)
    } catch (error) {
      await rm(aside, { force: true })
      if (!['EEXIST', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY'].includes(error.code)) throw error
      throw new ToolFailure(`Cannot write ${JSON.stringify(path)}: a file is where a folder would be, or the reverse`)
    }
  }

  async #admit(folder) {
    const sessions = (await readdir(this.#root).catch(() => [])).filter((name) => /^[0-9a-f]{64}$/.test(name))
    const known = sessions.includes(relative(this.#root, folder))
    if (!known && sessions.length >= MAX_SESSIONS) throw new ToolFailure('The storage is full: ask the operator')
    await mkdir(folder, { recursive: true, mode: 0o700 })
  }

  #folderOf({ tenantId, sessionId }) {
    const name = createHash('sha256')
      .update(JSON.stringify([tenantId, sessionId]))
      .digest('hex')
    return join(this.#root, name)
  }
}

/** @returns {Promise<string>} where a path of a session is @throws {ToolFailure} for one that is none, or leads elsewhere */
async function inside(folder, path) {
  const names = path.split('/')
  const isName = (name) => NAME.test(name) && Buffer.byteLength(name) <= MAX_NAME_BYTES
  if (names.length > MAX_DEPTH || !names.every(isName))
    throw new ToolFailure(
      `${JSON.stringify(path)} is no path: use names such as notes/today.txt, up to ${MAX_DEPTH} deep`,
    )
  let at = folder
  for (const name of names) {
    const found = await lstat(at).catch(() => undefined)
    if (found?.isSymbolicLink()) throw new ToolFailure(`${JSON.stringify(path)} leads out of the files of this session`)
    at = join(at, name)
  }
  return at
}

/** Every file below a folder. Links are not followed, as `readdir` would when it is asked for all. */
async function filesOf(folder, prefix = '') {
  const entries = await readdir(join(folder, prefix), { withFileTypes: true }).catch(() => [])
  const found = entries.map(async (entry) => {
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    if (entry.isDirectory()) return filesOf(folder, path)
    return entry.isFile() ? [{ path, bytes: (await lstat(join(folder, path))).size }] : []
  })
  return (await Promise.all(found)).flat().sort((left, right) => (left.path < right.path ? -1 : 1))
}
