import { z } from 'zod'
import { hostConfigSchema } from '../../src/config/host-config.ts'

/** The JSON Schema of the host config, for editors: its file names it in `$schema`. */
export const hostConfigJsonSchema = (): object => ({
  title: 'Host config of Brain: tenants and distributed tools',
  ...z.toJSONSchema(hostConfigSchema, { target: 'draft-2020-12', io: 'input', unrepresentable: 'any' }),
})
