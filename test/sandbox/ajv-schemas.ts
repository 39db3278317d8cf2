import { Ajv2020 } from 'ajv/dist/2020.js'
import { messageOf } from '../../src/kernel/errors.ts'
import type { SchemaChecker } from '../../src/contract/schema-checker.ts'

/** A checker of trusted schemas, in this process and without bounds. */
export function ajvSchemas(): SchemaChecker {
  const ajv = new Ajv2020({ strict: false })
  return {
    checkSchema: (schema) => {
      try {
        ajv.compile(schema)
        return Promise.resolve({ valid: true })
      } catch (error) {
        return Promise.resolve({ valid: false, message: messageOf(error) })
      }
    },
    checkValue: (schema, valueText) => {
      const valid = ajv.validate(schema, JSON.parse(valueText))
      return Promise.resolve(valid ? { valid } : { valid, message: ajv.errorsText() })
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
