import { BrainError } from '../../kernel/errors.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'

export type Permission = EnvironmentGrant['permissions'][number]

/** Who asks for something to be done with an environment, and what they may (contract 5.4). */
export type Authority =
  | { readonly kind: 'application' }
  | {
      readonly kind: 'granted'
      readonly grants: readonly EnvironmentGrant[]
      /** The environment that it runs in, which it can neither change nor give up. */
      readonly within: string
    }

export const APPLICATION: Authority = { kind: 'application' }

/** Whether grants cover an environment: a grant of a declared one is a grant of what is made from it. */
export function mayUse(authority: Authority, permission: Permission, template: string, method?: string): boolean {
  if (authority.kind === 'application') return true
  return authority.grants.some(
    ({ environment, permissions, methods }) =>
      environment === template &&
      permissions.includes(permission) &&
      (method === undefined || methods === undefined || methods.includes(method)),
  )
}

/** @throws BrainError `invalid_request` */
export function assertMay(authority: Authority, permission: Permission, template: string, method?: string): void {
  if (mayUse(authority, permission, template, method)) return
  const what = method === undefined ? `"${permission}"` : `to call "${method}"`
  throw new BrainError(
    'invalid_request',
    `Cannot use environment "${template.slice(0, 128)}": no grant gives ${what} there; grants are given when the session is created`,
  )
}

/** @throws BrainError `invalid_request` when it is the asker's own */
export function assertNotWithin(authority: Authority, name: string, what: string): void {
  if (authority.kind === 'granted' && authority.within === name)
    throw new BrainError('invalid_request', `Cannot ${what} environment "${name}": whoever asks runs in it`)
}
