import type { ErrorObject } from 'ajv'

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

function describeFault({
  instancePath,
  keyword,
  params,
  message,
}: ErrorObject<string, Record<string, unknown>>): string {
  const at = instancePath === '' ? 'the value' : instancePath
  return cut(`${cut(at, MAX_FAULT_LENGTH / 2)} ${expectation(keyword, params) ?? message ?? `breaks "${keyword}"`}`)
}

/** Where it has something better to say than the validator: names and allowed values, in one form. */
function expectation(keyword: string, params: Readonly<Record<string, unknown>>): string | undefined {
  switch (keyword) {
    case 'enum':
      return `must be one of ${list(params['allowedValues'])}`
    case 'const':
      return `must be ${print(params['allowedValue'])}`
    case 'type':
      return `must be ${[params['type']].flat().join(' or ')}`
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
