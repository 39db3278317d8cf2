import { parseComponentId } from '../../kernel/ids.ts'
import { type Artifact, readArtifact } from '../admission/artifact.ts'

type Entry = { readonly loading: Promise<Artifact>; artifact: Artifact | undefined; bytes: number }

const sizeOf = (artifact: Artifact): number =>
  artifact.cores.reduce((sum, core) => sum + core.bytes.length, artifact.js.length)

/** Verified artifacts in memory, the least recently used dropped first. Files are read once for all that wait. */
export class LoadedArtifacts {
  readonly #dataDirectory: string
  readonly #capacity: number
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(dataDirectory: string, capacityBytes: number) {
    this.#dataDirectory = dataDirectory
    this.#capacity = capacityBytes
  }

  /** The artifact if it is in memory. */
  peek(id: string): Artifact | undefined {
    const entry = this.#entries.get(id)
    if (entry?.artifact === undefined) return undefined
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    return entry.artifact
  }

  /** @throws BrainError `environment_not_ready` */
  load(id: string): Promise<Artifact> {
    const known = this.#entries.get(id)
    if (known !== undefined) return known.loading
    const entry: Entry = {
      loading: readArtifact(this.#dataDirectory, parseComponentId(id)),
      artifact: undefined,
      bytes: 0,
    }
    this.#entries.set(id, entry)
    entry.loading.then(
      (artifact) => this.#keep(id, entry, artifact),
      () => this.#entries.delete(id),
    )
    return entry.loading
  }

  #keep(id: string, entry: Entry, artifact: Artifact): void {
    entry.artifact = artifact
    entry.bytes = sizeOf(artifact)
    this.#bytes += entry.bytes
    for (const [other, { bytes }] of this.#entries) {
      if (this.#bytes <= this.#capacity) return
      if (bytes === 0) continue // still being read
      if (other === id && this.#entries.size === 1) return
      this.#entries.delete(other)
      this.#bytes -= bytes
    }
  }
}
