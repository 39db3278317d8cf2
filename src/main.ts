import { explainFailure } from './cli/explain-failure.ts'
import { serve } from './cli/serve.ts'

try {
  await serve(process.env)
  process.exit(0)
} catch (error) {
  process.stderr.write(`${explainFailure(error)}\n`)
  process.exit(1)
}
