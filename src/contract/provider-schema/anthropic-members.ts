import { isJsonObject, type JsonObject } from '../../kernel/json.ts'
import type { PathRemark } from './schema-remark.ts'
import { pointerStep } from './subschemas.ts'

const MEMBER = /^[a-zA-Z0-9_.-]{1,64}$/

/** Members of the root that Anthropic refuses, which nothing but another name helps. */
export function membersRefusedByAnthropic({ properties }: JsonObject): readonly PathRemark[] {
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  return names
    .filter((name) => !MEMBER.test(name))
    .map((name) => ({
      path: `#/properties/${pointerStep(name)}`,
      effect: 'refused',
      reason: 'Anthropic refuses a member of this name',
      remedy: `rename it to 1 to 64 of the characters A-Z a-z 0-9 _ . -`,
    }))
}
