import type { Json } from '../kernel/json.ts'
import { jsonOf } from './json-value.ts'

/** The details of an error as they are sent. What is not JSON is not worth failing otherwise. */
export function detailsOf({ details }: { readonly details?: unknown }): { readonly details?: Json } {
  try {
    return details === undefined ? {} : { details: jsonOf(details, 'details') }
  } catch {
    return {}
  }
}
