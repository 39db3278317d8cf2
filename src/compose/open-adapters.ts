import { join } from 'node:path'
import { systemClock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import type { SchemaChecker } from '../contract/schema-checker.ts'
import { openHostStore } from '../bindings/host/host-store.ts'
import { Hosts } from '../bindings/host/hosts.ts'
import type { Config } from '../config/config.ts'
import { openCallLogDirectory } from '../dispatch/call-log-directory.ts'
import { openSchemaChecker } from '../dispatch/schemas/open-schema-checker.ts'
import type { Journal } from '../journal/journal.ts'
import type { ModelProvider } from '../model/model-provider.ts'
import { type ComponentsSettings, openComponents } from '../sandbox/admission/components.ts'
import { loadTranspiler, type TranspilerProgram } from '../sandbox/admission/transpiler/program.ts'
import { loadScripts } from '../sandbox/bundle.ts'
import { spawnBoxed } from '../sandbox/launch/spawn-boxed.ts'
import { probeLevel } from '../sandbox/level.ts'
import { openProcessSandbox } from '../sandbox/process-sandbox.ts'
import type { Sandbox, SandboxLevel } from '../sandbox/sandbox.ts'
import { type KeptCredentials, openCredentials } from '../session/credentials.ts'
import { openProviders } from './open-providers.ts'

export type Adapters = {
  readonly journal: Journal
  readonly schemas: SchemaChecker
  readonly sandbox: Sandbox
  readonly components: Awaited<ReturnType<typeof openComponents>>
  readonly callLogs: Awaited<ReturnType<typeof openCallLogDirectory>>
  readonly credentials: KeptCredentials
  readonly hosts: Hosts
  readonly providers: ReadonlyMap<string, ModelProvider>
}

type Given = {
  readonly journal: Journal
  readonly logger: Logger
  /** Default: what this machine offers, probed now. */
  readonly level?: SandboxLevel
  /** Default: loaded now, so that a server without one does not start. */
  readonly transpiler?: () => Promise<TranspilerProgram>
  /** Default: one whose thread starts now. The stack ends it. */
  readonly schemas?: SchemaChecker
  /** Default: {@link openProcessSandbox}. */
  readonly openSandbox?: typeof openProcessSandbox
}

/** Opens everything that has a life of its own; the stack ends it in reverse. */
export async function openAdapters(config: Config, given: Given, stack: AsyncDisposableStack): Promise<Adapters> {
  const { limits, dataDirectory } = config
  const { journal, logger } = given
  const schemas = stack.use(given.schemas ?? openSchemaChecker())
  const level = given.level ?? (await probeLevel({ unsafe: config.isUnsafeAllowed, searchPath: config.searchPath }))
  const transpiler = given.transpiler ?? (await loadedTranspiler())
  const parts = { ...given, level, schemas, transpiler }
  const { components, sandbox } = await openComponentsAndSandbox(config, parts, stack)
  return {
    journal,
    schemas,
    sandbox,
    components,
    callLogs: await openCallLogDirectory(join(dataDirectory, 'call-logs')),
    credentials: await openCredentials(join(dataDirectory, 'credentials'), config.secretKey),
    hosts: stack.use(new Hosts({ store: await openHostStore(join(dataDirectory, 'hosts')), limits, logger })),
    providers: await openProviders(config),
  }
}

type SandboxParts = Pick<ComponentsSettings, 'level' | 'schemas' | 'transpiler'> & Pick<Given, 'logger' | 'openSandbox'>

/** The supervisor starts while the components are looked at. */
async function openComponentsAndSandbox(
  config: Config,
  { logger, openSandbox = openProcessSandbox, ...parts }: SandboxParts,
  stack: AsyncDisposableStack,
): Promise<Pick<Adapters, 'components' | 'sandbox'>> {
  const opening = openSandbox({
    dataDirectory: config.dataDirectory,
    limits: config.limits,
    level: parts.level,
    isolation: config.isolation,
    workspaceDirectories: config.workspaceDirectories,
    logger,
    recoverArtifact: async (id) => {
      const components = await store
      components.distrustArtifact(id)
      return components.ensureArtifact(id)
    },
  })
  const store = openComponentStore(config, parts)
  const [sandbox, components] = await Promise.allSettled([opening, store])
  if (components.status === 'fulfilled') stack.use(components.value)
  if (sandbox.status === 'fulfilled') stack.use(sandbox.value)
  return { components: await store, sandbox: await opening }
}

async function loadedTranspiler(): Promise<() => Promise<TranspilerProgram>> {
  const program = await loadTranspiler()
  return () => Promise.resolve(program)
}

async function openComponentStore(
  { dataDirectory: directory, limits }: Config,
  parts: Pick<ComponentsSettings, 'level' | 'schemas' | 'transpiler'>,
): ReturnType<typeof openComponents> {
  const { launcher } = await loadScripts()
  return openComponents({
    ...parts,
    directory,
    limits,
    clock: systemClock,
    spawn: (start, events) => spawnBoxed({ ...start, launcher, level: parts.level }, events),
  })
}
