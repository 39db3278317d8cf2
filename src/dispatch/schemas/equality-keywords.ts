import type { FuncKeywordDefinition } from 'ajv'
import { canonicalText } from './canonical-text.ts'

/**
 * `const`, `enum` and `uniqueItems` anew. The validator's own compare values with a library that calls their `valueOf`
 * and `toString`, which are members like any others in JSON, and compare every item with every other.
 */
export const EQUALITY_KEYWORDS: readonly (FuncKeywordDefinition & { readonly keyword: string })[] = [
  {
    keyword: 'const',
    compile(allowed: unknown) {
      const text = canonicalText(allowed)
      return (value: unknown) => value === allowed || canonicalText(value) === text
    },
  },
  {
    keyword: 'enum',
    schemaType: 'array',
    compile(allowed: readonly unknown[]) {
      const texts = new Set(allowed.map(canonicalText))
      return (value: unknown) => texts.has(canonicalText(value))
    },
  },
  {
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    compile(isAsked: boolean) {
      return (items: readonly unknown[]) => !isAsked || new Set(items.map(canonicalText)).size === items.length
    },
  },
]
