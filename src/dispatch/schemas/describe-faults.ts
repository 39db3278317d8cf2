import type { ErrorObject } from 'ajv'

type Fault = ErrorObject<string, Record<string, unknown>>

const MAX_FAULTS_LENGTH = 1000
const MAX_FAULT_LENGTH = 300
const MAX_FAULTS = 8

/** The first faults of a value, each with its JSON pointer and what would have been right; at most 1,000 characters. */
export function describeFaults(errors: readonly ErrorObject[]): string {
  const faults = [...new Set(errors.slice(0, 100).map(describeFault))]
  let text = faults[0] ?? 'it does not match the schema'
  for (const fault of faults.slice(1, MAX_FAULTS)) {
    if (text.length + fault.length + 2 > MAX_FAULTS_LENGTH) break
    text += `; ${fault}`
  }
  return text
}

function describeFault(error: Fault): string {
  const at = error.instancePath === '' ? 'the value' : error.instancePath
  return cut(`${cut(at, MAX_FAULT_LENGTH / 2)} ${expectation(error) ?? error.message ?? `breaks "${error.keyword}"`}`)
}

/** Where it has something better to say than the validator: names and allowed values, in one form. */
function expectation({ keyword, params, schema }: Fault): string | undefined {
  switch (keyword) {
    case 'enum':
      return `must be one of ${list(schema)}`
    case 'const':
      return `must be ${print(schema)}`
    case 'type':
      return `must be ${[params['type']].flat().join(' or ')}`
    case 'uniqueItems':
      return 'must not hold the same item twice'
    case 'required':
      return `must have the property ${print(params['missingProperty'])}`
    case 'additionalProperties':
      return `must not have the property ${print(params['additionalProperty'])}`
    case 'unevaluatedProperties':
      return `must not have the property ${print(params['unevaluatedProperty'])}`
    default:
      return undefined
  }
}

const list = (values: unknown): string => (Array.isArray(values) ? values.map(print).join(', ') : print(values))
const print = (value: unknown): string => JSON.stringify(value)
const cut = (text: string, length = MAX_FAULT_LENGTH): string =>
  text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…`
