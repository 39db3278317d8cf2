import { defineConfig } from 'vitest/config'
import { SummaryReporter } from '../.ci/summary-reporter.ts'

const RUST = ['test/package/rebuild-examples.test.ts']

/**
 * `unit` is quick and needs no process of ours; `package` packs and tries what is built; `system` runs real servers and
 * boxes, alone, since it looks at times and at processes. What Rust compiles meanwhile, `rust` looks at in the end.
 */
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
          // Of two processors Vitest would take one.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          exclude: RUST,
          testTimeout: 300_000,
          hookTimeout: 600_000,
          // Python, npm and the linkers use one thread each: all at once they need half as long.
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/{sandbox,http,e2e,crash,docs}/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'rust',
          include: RUST,
          globalSetup: 'test/package/rust-build.ts',
          testTimeout: 120_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
