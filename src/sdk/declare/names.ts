import { clip } from '../../kernel/errors.ts'
import { isIdentifier } from '../../kernel/ids.ts'
import type { EnvironmentGrant } from '../../contract/session-request.ts'
import { membersOf } from '../strict-members.ts'

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/
const MOST_DESCRIPTION = 8192
const PERMISSIONS = ['read', 'create', 'setup', 'update', 'delete', 'call']

/** @throws TypeError for a name that some provider of models would refuse (contract A22, cases D-26) */
export function checkToolName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || !TOOL_NAME.test(name))
    throw new TypeError(
      `Cannot declare tool ${clip(JSON.stringify(name) ?? 'undefined', 100)}: a name is 1 to 64 of the characters A-Z a-z 0-9 _ -, ${TOOL_NAME.source}`,
    )
}

/** @throws TypeError for an empty description, and for one too long to be sent whole */
export function checkDescription(description: unknown, what: string): asserts description is string {
  if (typeof description !== 'string' || description === '' || description.length > MOST_DESCRIPTION)
    throw new TypeError(`${what}: description must be text of 1 to ${MOST_DESCRIPTION} characters`)
}

/** @throws TypeError */
export function checkIdentifier(name: unknown, what: string): asserts name is string {
  if (typeof name !== 'string' || !isIdentifier(name))
    throw new TypeError(
      `${what} must be an identifier, not ${clip(JSON.stringify(name) ?? 'undefined', 100)}: letters, digits and . _ : - (at most 128)`,
    )
}

/** Grants over environments, as they are sent. @throws TypeError */
export function grantsOf(
  grants: readonly EnvironmentGrant[] | undefined,
  what: string,
): { readonly environments?: readonly EnvironmentGrant[] } {
  if (grants === undefined) return {}
  if (!Array.isArray(grants)) throw new TypeError(`${what}: environments must be a list of grants`)
  for (const grant of grants as readonly EnvironmentGrant[]) checkGrant(grant, `${what}: environments`)
  return { environments: grants }
}

function checkGrant(grant: EnvironmentGrant, what: string): void {
  membersOf(grant, ['environment', 'permissions', 'methods'], what)
  checkIdentifier(grant.environment, `${what}: environment`)
  if (!Array.isArray(grant.permissions) || grant.permissions.some((one) => !PERMISSIONS.includes(one)))
    throw new TypeError(`${what}: permissions must be a list of ${PERMISSIONS.join(', ')}`)
  if (grant.methods === undefined) return
  if (!Array.isArray(grant.methods)) throw new TypeError(`${what}: methods must be a list of names`)
  for (const method of grant.methods as readonly unknown[]) checkIdentifier(method, `${what}: method`)
}
