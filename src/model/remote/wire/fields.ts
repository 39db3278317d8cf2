import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.ts'

/** Members of what a provider sent: absent and of another type are the same, since neither can be used. */
export const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {})
export const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])
export const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

/** A count, where one was sent: absent is not 0. */
export const countOf = (value: Json | undefined): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** The members that have a value: what is not known is left out, never null. */
export function known<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: NonNullable<Members[Name]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Members]?: NonNullable<Members[Name]>
  }
}
