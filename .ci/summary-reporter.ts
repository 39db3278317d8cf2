import type { Reporter, TestCase, TestModule } from 'vitest/node'

type Count = { readonly passed: number; readonly failed: number; readonly skipped: readonly string[] }

const nameOf = (test: TestCase): string => `${test.module.relativeModuleId}: ${test.fullName}`

/** A file that cannot be loaded, a hook that throws: failures that belong to no test. */
const ownFaults = (module: TestModule): number => {
  const suites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0).length
  const hasFailedTest = [...module.children.allTests('failed')].length > 0
  if (suites > 0 || module.errors().length > 0) return suites + Math.min(1, module.errors().length)
  return module.state() === 'failed' && !hasFailedTest ? 1 : 0
}

/** Sums a run up. Errors outside of tests count as failures, so that `failed` is 0 exactly when the run is good. */
export function countRun(modules: readonly TestModule[], unhandledErrors: number): Count {
  const tests = modules.flatMap((module) => [...module.children.allTests()])
  const inState = (state: string): TestCase[] => tests.filter((test) => test.result().state === state)
  return {
    passed: inState('passed').length,
    failed:
      inState('failed').length +
      inState('pending').length +
      modules.reduce((sum, module) => sum + ownFaults(module), 0) +
      unhandledErrors,
    skipped: inState('skipped').map(nameOf),
  }
}

/**
 * Ends every test run with the line `N passed, N failed`, the last that the process writes.
 *
 * Where CI is set, a skipped test counts as failed: a check that does not run must not look like one that holds.
 */
export class SummaryReporter implements Reporter {
  readonly #isSkipAllowed: boolean

  constructor(isSkipAllowed = (process.env['CI'] ?? '') === '') {
    this.#isSkipAllowed = isSkipAllowed
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = countRun(modules, unhandledErrors.length)
    const refused = this.#isSkipAllowed ? [] : count.skipped
    const failed = count.failed + refused.length
    if (failed > 0) process.exitCode = 1
    process.once('exit', (code) => {
      const lines = refused.map((name) => `skipped, which CI does not allow: ${name}`)
      // An exit code that no test accounts for must not stand beside "0 failed".
      const shown = code !== 0 && failed === 0 ? 1 : failed
      if (failed > 0) process.exitCode = 1
      process.stdout.write(`${[...lines, `${count.passed} passed, ${shown} failed`].join('\n')}\n`)
    })
  }
}
