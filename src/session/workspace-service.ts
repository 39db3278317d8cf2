import { BrainError } from '../kernel/errors.ts'
import type { SessionId, TenantId } from '../kernel/ids.ts'
import type { FileEntry, WorkspaceFiles } from '../sandbox/sandbox.ts'
import type { Sessions } from './sessions.ts'

const MOST_ENTRIES = 1000

/** Files of a session's workspaces for the application, whatever the bindings grant their tools (contract A12). */
export class WorkspaceService {
  readonly #sessions: Sessions
  readonly #files: WorkspaceFiles
  readonly #nameOf: (session: SessionId, environment: string) => string

  constructor(sessions: Sessions, files: WorkspaceFiles, nameOf: (session: SessionId, environment: string) => string) {
    this.#sessions = sessions
    this.#files = files
    this.#nameOf = nameOf
  }

  #workspace(tenant: TenantId, id: SessionId, environment: string): Promise<string> {
    return this.#sessions.use(tenant, id, async (session) => {
      if (session.isBeingDeleted) throw new BrainError('not_found', `Cannot find session "${id}": it is being deleted`)
      const isDeleted = session.state.environments.get(environment)?.state === 'deleted'
      if (isDeleted || !session.configuration.environments.some((candidate) => candidate.name === environment))
        throw new BrainError('not_found', `Cannot find environment "${environment}" in session "${id}"`)
      if (!session.configuration.environments.some(({ name, driver }) => name === environment && driver === 'brain'))
        throw new BrainError(
          'unsupported',
          `Cannot use files of environment "${environment}": it has no workspace here`,
        )
      return this.#nameOf(id, environment)
    })
  }

  async list(
    tenant: TenantId,
    id: SessionId,
    environment: string,
    query: { prefix: string; after: string; limit?: number },
  ): Promise<readonly FileEntry[]> {
    const workspace = await this.#workspace(tenant, id, environment)
    return this.#files.list(workspace, { ...query, limit: Math.min(query.limit ?? MOST_ENTRIES, MOST_ENTRIES) })
  }

  async read(tenant: TenantId, id: SessionId, environment: string, path: string): ReturnType<WorkspaceFiles['read']> {
    return this.#files.read(await this.#workspace(tenant, id, environment), path)
  }

  async write(
    tenant: TenantId,
    id: SessionId,
    environment: string,
    file: { path: string; body: AsyncIterable<Uint8Array> },
  ): Promise<{ readonly size: number }> {
    return this.#files.write(await this.#workspace(tenant, id, environment), file.path, file.body)
  }

  async remove(tenant: TenantId, id: SessionId, environment: string, path: string): Promise<void> {
    await this.#files.remove(await this.#workspace(tenant, id, environment), path)
  }
}
