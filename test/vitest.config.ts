import { defineConfig } from 'vitest/config'
import { SummaryReporter } from '../.ci/summary-reporter.ts'

const root = new URL('..', import.meta.url).pathname

/** Looks at what Rust has compiled meanwhile. */
const RUST = ['test/package/{rebuild-examples,rust-builder}.test.ts']

/**
 * What says how long something may take, how much processor or memory it may cost, or what stays behind at a moment. It is
 * right about that only where nobody else is at work. Everything else waits for events, and may wait longer.
 */
const ALONE = [
  'test/sandbox/{box-reuse,calls,components,deaths,egress,egress-broker,files-workspaces,limits,protocol,slices}.test.ts',
  'test/http/{hostile-uploads,uploads}.test.ts',
  'test/e2e/{components,turns}.test.ts',
  'test/crash/server-kill.test.ts',
]

/**
 * Of two processors one is often idle while a test waits for a disk, a network or a process. Three files at once leave none
 * of that; more would only make each wait longer.
 */
const BESIDE_EACH_OTHER = 3

// Every process that a test starts loads the same sources: Node strips and compiles them once, and keeps what came of it.
process.env['NODE_COMPILE_CACHE'] ??= `${root}node_modules/.cache/node`

/**
 * `unit` is quick and needs no process of ours. `package`, which packs and tries what is built, and `system`, which runs
 * real servers and boxes, go on beside each other, so that both processors have work. `alone` comes after them, one file at
 * a time. Rust compiles beside all of them what nobody else wants of the processors, most of it beside `alone`, and `rust`
 * looks at what came of it.
 */
export default defineConfig({
  root,
  // As authors of tools write it, and as test/docs/resolve-packages.ts has it for examples.
  resolve: { alias: [{ find: /^@aexhq\/brain$/, replacement: `${root}src/sdk/index.ts` }] },
  test: {
    reporters: ['default', new SummaryReporter()],
    // What is polled for comes when it comes: a machine may be slow.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/{unit,contract,architecture}/**/*.test.ts'],
          testTimeout: 20_000,
          // Of two processors Vitest would take one.
          maxWorkers: 2,
          // Starting a process and loading the sources again costs more than most of these files do.
          isolate: false,
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
          maxWorkers: BESIDE_EACH_OTHER,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['test/{sandbox,http,e2e,crash,docs}/**/*.test.ts'],
          exclude: ALONE,
          testTimeout: 120_000,
          hookTimeout: 300_000,
          maxWorkers: BESIDE_EACH_OTHER,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ALONE,
          // As many as a server has by default.
          env: { BRAIN_TEST_WARM_BOXES: '2' },
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
