import { BrainError } from '../kernel/errors.ts'
import { covers, type NetworkOrigin, parseOrigin } from '../contract/network-origin.ts'
import type { BrainEnvConfiguration, BrainEnvironment } from '../contract/session-request.ts'
import type { Invocation, Mount, SandboxLevel } from './sandbox.ts'

/** What the operator lets a brainEnv hold (contract 6.1). */
export type BrainEnvAllowance = {
  readonly secrets: readonly string[]
  readonly filesystem: readonly ('workspace' | 'scratch')[]
  readonly network: readonly NetworkOrigin[]
}

/** What a component holds beside its input. */
export type BrainEnvGrants = Pick<Invocation, 'mounts' | 'secrets' | 'network'>

/** The name of a session's workspace in one environment. */
export const workspaceName = (session: string, environment: string): string => `${session}/${environment}`

const deny = (what: string, remedy: string): never => {
  throw new BrainError('invalid_request', `Cannot grant ${what}: ${remedy}`)
}

/** Environments of driver `brain`: what they may ask for, and what it gives to the components in them (contract 6.1). */
export class BrainEnv {
  readonly #allowanceOf: (tenant: string) => BrainEnvAllowance | undefined
  readonly #secret: (name: string) => string | undefined

  /**
   * @param allowanceOf a tenant, read at each call; one who has none may hold nothing
   * @param secret value of a secret, read at each call; undefined when the server does not have it
   */
  constructor(
    allowanceOf: (tenant: string) => BrainEnvAllowance | undefined,
    secret: (name: string) => string | undefined,
  ) {
    this.#allowanceOf = allowanceOf
    this.#secret = secret
  }

  /** @throws BrainError `invalid_request` naming what an environment asks for and the operator does not allow. */
  check(tenant: string, configuration: BrainEnvConfiguration): void {
    const allow = this.#allow(tenant)
    const { secrets, filesystem } = allow
    for (const name of configuration.secrets ?? []) {
      if (!secrets.includes(name)) deny(`secret "${name}"`, "it is not on the server's list BRAIN_ENV_SECRET_ALLOW")
      if (this.#secret(name) === undefined)
        deny(`secret "${name}"`, 'it is allowed, but the server has no variable of that name')
    }
    for (const origin of configuration.network ?? []) {
      if (!isAllowed(allow, origin))
        deny(`network access to "${origin}"`, "it is not on the server's list BRAIN_ENV_NETWORK_ALLOW")
    }
    for (const directory of ['workspace', 'scratch'] as const) {
      if (configuration.filesystem?.[directory] !== undefined && !filesystem.includes(directory))
        deny(`filesystem "${directory}"`, "it is not on the server's list BRAIN_ENV_FILESYSTEM_ALLOW")
    }
  }

  /** What the session was granted, within what the operator allows now: lists shrink while sessions live. */
  grants(tenant: string, session: string, environment: BrainEnvironment): BrainEnvGrants {
    const { configuration } = environment
    const allow = this.#allow(tenant)
    const secrets = (configuration.secrets ?? []).filter((name) => allow.secrets.includes(name))
    return {
      mounts: mountsOf(allow, session, environment),
      secrets: this.#secrets(secrets),
      network: (configuration.network ?? []).filter((origin) => isAllowed(allow, origin)),
    }
  }

  #allow(tenant: string): BrainEnvAllowance {
    return this.#allowanceOf(tenant) ?? NOTHING
  }

  #secrets(names: readonly string[]): Record<string, string> {
    const values: Record<string, string> = {}
    for (const name of names) {
      const value = this.#secret(name)
      if (value !== undefined) values[name] = value
    }
    return values
  }
}

const NOTHING: BrainEnvAllowance = { secrets: [], filesystem: [], network: [] }

function isAllowed({ network }: BrainEnvAllowance, text: string): boolean {
  const wanted = parseOrigin(text)
  return wanted !== undefined && network.some((allowed) => covers(allowed, wanted))
}

function mountsOf(
  { filesystem }: BrainEnvAllowance,
  session: string,
  { name, configuration }: BrainEnvironment,
): Mount[] {
  const { workspace, scratch } = configuration.filesystem ?? {}
  const mounts: Mount[] = []
  if (workspace !== undefined && filesystem.includes('workspace'))
    mounts.push({ guest: '/workspace', workspace: workspaceName(session, name), write: workspace === 'write' })
  if (scratch !== undefined && filesystem.includes('scratch'))
    mounts.push({ guest: '/scratch', write: scratch === 'write' })
  return mounts
}

/** @throws BrainError `sandbox_unavailable` where no component may run. */
export function assertRunnable(level: SandboxLevel): void {
  if (level.name !== 'none' || level.unsafe) return
  const reason = level.remarks.join('; ')
  throw new BrainError(
    'sandbox_unavailable',
    `Cannot run components on this machine: ${reason}. Use Linux 5.13 or newer with landlock and seccomp, or set BRAIN_ENV_UNSAFE=1 for code that you trust`,
  )
}
