import { BrainError } from './errors.ts'

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** `ses_` and 32 hexadecimal digits (contract 0.2). */
export type SessionId = Branded<'SessionId'>
/** The lowercase SHA-256 of the uploaded bytes (contract 0.2). */
export type ComponentId = Branded<'ComponentId'>
/** `host_` and 20 to 32 letters and digits (contract 0.2). */
export type HostId = Branded<'HostId'>
/** The tenant that a request was authenticated as (contract A3). */
export type TenantId = Branded<'TenantId'>

const SESSION_ID = /^ses_[0-9a-f]{32}$/
const COMPONENT_ID = /^[0-9a-f]{64}$/
/** The form of an identifier (contract 0.2). */
export const IDENTIFIER = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

/** Tool, environment, template, method, kv key, event kind, provider and error code (contract 0.2). */
export const isIdentifier = (text: string): boolean => IDENTIFIER.test(text)

const randomHex = (): string => crypto.randomUUID().replaceAll('-', '')

export const newSessionId = (): SessionId => `ses_${randomHex()}` as SessionId

export const newHostId = (): HostId => `host_${randomHex()}` as HostId

/** @throws BrainError `invalid_request` when the text has not the form of a session id. */
export function parseSessionId(text: string): SessionId {
  if (!SESSION_ID.test(text))
    throw new BrainError(
      'invalid_request',
      `Cannot read session id ${JSON.stringify(text.slice(0, 80))}: expected "ses_" and 32 hexadecimal digits`,
    )
  return text as SessionId
}

/** @throws BrainError `invalid_request` when the text has not the form of a component id. */
export function parseComponentId(text: string): ComponentId {
  if (!COMPONENT_ID.test(text))
    throw new BrainError(
      'invalid_request',
      `Cannot read component id ${JSON.stringify(text.slice(0, 80))}: expected 64 lowercase hexadecimal digits`,
    )
  return text as ComponentId
}

export const localTenant = 'local' as TenantId
