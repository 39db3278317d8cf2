import { FACTS, KIND, OPEN_BIT } from '../../wire/files.ts'
import type { Handle, Listing, OpenBits, OpenDirectory, OpenFile } from './handle.ts'
import type { CheckedPath } from './path.ts'
import { refuse } from './refusal.ts'
import { type Facts, writeFacts } from './system.ts'

/** No real device has this number. */
const DEVICE = 0xffff_ffff_ffff_ffffn
const CHANGES = OPEN_BIT.CREATE | OPEN_BIT.TRUNCATE | OPEN_BIT.WRITE | OPEN_BIT.MUTATE

const readOnly = (): never => refuse('read-only')

function factsOf(kind: number, size: number, madeAtMs: number, number: number): Facts {
  const seconds = Math.floor(madeAtMs / 1000)
  return {
    kind,
    size,
    mtimeSeconds: seconds,
    mtimeNanos: 0,
    atimeSeconds: seconds,
    atimeNanos: 0,
    links: 1,
    device: DEVICE,
    inode: BigInt(number),
  }
}

class SecretFile implements OpenFile {
  readonly type = 'file'
  readonly #value: Buffer
  readonly #facts: Facts

  constructor(value: Buffer, facts: Facts) {
    this.#value = value
    this.#facts = facts
  }

  stat(): Facts {
    return this.#facts
  }

  read(offset: number, length: number): Buffer {
    return this.#value.subarray(Math.min(offset, this.#value.length), offset + length)
  }

  write(): number {
    return refuse('bad-descriptor')
  }

  append(): number {
    return refuse('bad-descriptor')
  }

  credit(): number {
    return 0
  }

  setSize(): void {
    refuse('invalid')
  }

  setTimes(): void {
    readOnly()
  }

  sync(): void {}
  close(): void {}
}

type Secret = { readonly value: Buffer; readonly facts: Facts }

/** `/secrets`: one flat read-only directory out of memory. Values never touch the disk. */
export class SecretsDirectory implements OpenDirectory {
  readonly type = 'directory'
  readonly #secrets = new Map<string, Secret>()
  readonly #facts: Facts

  constructor(values: Readonly<Record<string, string>>, madeAtMs: number) {
    this.#facts = factsOf(KIND.DIRECTORY, 0, madeAtMs, 0)
    for (const [name, text] of Object.entries(values)) {
      const value = Buffer.from(text)
      this.#secrets.set(name, { value, facts: factsOf(KIND.FILE, value.length, madeAtMs, this.#secrets.size + 1) })
    }
  }

  stat(): Facts {
    return this.#facts
  }

  /** The secret that a path names; undefined for this directory itself. @throws Refusal */
  #find(path: CheckedPath): Secret | undefined {
    const text = path.bytes.toString()
    const components = text.split('/').filter((component) => component !== '' && component !== '.')
    const [name, ...rest] = components
    if (name === undefined) return undefined
    if (name === '..') return refuse('not-permitted')
    const secret = this.#secrets.get(name) ?? refuse('no-entry')
    // Whatever follows a file's name, if only a slash, asks for a directory.
    if (rest.length > 0 || /\/\.?$/.test(text)) refuse('not-directory')
    return secret
  }

  statAt(path: CheckedPath): Facts {
    return this.#find(path)?.facts ?? this.#facts
  }

  open(path: CheckedPath, bits: OpenBits): Handle {
    if ((bits & CHANGES) !== 0) readOnly()
    const secret = this.#find(path)
    if (secret === undefined) return this
    if ((bits & OPEN_BIT.DIRECTORY) !== 0) refuse('not-directory')
    return new SecretFile(secret.value, secret.facts)
  }

  list(): Listing {
    const entries: Buffer[] = []
    for (const [name, { facts }] of this.#secrets) {
      const bytes = Buffer.from(name)
      const head = Buffer.alloc(FACTS.HEAD)
      writeFacts(head, 0, facts)
      head.writeUInt16LE(bytes.length, FACTS.EXTRA)
      entries.push(head, bytes)
    }
    return { next: () => ({ entries: Buffer.concat(entries), last: true }), close() {} }
  }

  makeDirectory = readOnly
  removeDirectory = readOnly
  unlink = readOnly
  rename = readOnly
  symlink = readOnly
  setTimes = readOnly
  setTimesAt = readOnly

  readLink(path: CheckedPath): Buffer {
    this.#find(path)
    return refuse('invalid')
  }

  close(): void {}
}
