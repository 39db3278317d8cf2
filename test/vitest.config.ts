import { defineConfig } from 'vitest/config'
import { SummaryReporter } from '../.ci/summary-reporter.ts'

/** `unit` is quick and needs no process of ours; `system` runs real servers, boxes and builds. */
export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    reporters: ['default', new SummaryReporter()],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/{unit,contract,architecture}/**/*.test.ts'],
          testTimeout: 20_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/{sandbox,http,e2e,crash,package,docs}/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
