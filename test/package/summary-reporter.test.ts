import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** Runs planted test files in a vitest of their own. */
async function lastLineOf(
  files: Readonly<Record<string, string>>,
  ci: string,
): Promise<{ code: number; line: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'brain-summary-'))
  try {
    const reporter = JSON.stringify(join(root, '.ci/summary-reporter.ts'))
    const config = `import { SummaryReporter } from ${reporter}
      export default { test: { globals: true, reporters: ['default', new SummaryReporter()] } }`
    await writeFile(join(folder, 'vitest.config.mjs'), config)
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const { code, stdout } = await run(process.execPath, [vitest, 'run', '--root', folder], {
      env: { PATH: process.env['PATH'], CI: ci },
    }).then(
      (output) => ({ code: 0, stdout: output.stdout }),
      (error: unknown) => error as { code: number; stdout: string },
    )
    return { code, line: stdout.trimEnd().split('\n').at(-1) ?? '' }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const GOOD = `it('a', () => {}); it('b', () => {})`

const GOOD_AND = (more: string): Record<string, string> => ({ 'a.test.mjs': `${GOOD}; ${more}` })

describe('SummaryReporter', () => {
  it.each([
    { what: 'counts what passed', files: GOOD_AND(''), exit: 0, line: '2 passed, 0 failed' },
    {
      what: 'counts what failed',
      files: GOOD_AND(`it('c', () => expect(1).toBe(2))`),
      exit: 1,
      line: '2 passed, 1 failed',
    },
    {
      what: 'counts a file that cannot be loaded',
      files: { ...GOOD_AND(''), 'b.test.mjs': `import './gone.mjs'` },
      exit: 1,
      line: '2 passed, 1 failed',
    },
    {
      what: 'counts a hook that throws',
      files: GOOD_AND(`afterAll(() => { throw new Error('x') })`),
      exit: 1,
      line: '2 passed, 1 failed',
    },
    {
      what: 'counts an error outside of tests',
      files: GOOD_AND(`void Promise.reject(new Error('x'))`),
      exit: 1,
      line: '2 passed, 1 failed',
    },
    {
      what: 'lets a test be skipped by hand',
      files: GOOD_AND(`it.skip('c', () => {})`),
      exit: 0,
      line: '2 passed, 0 failed',
    },
    {
      what: 'fails a run with a skipped test where CI is set',
      files: GOOD_AND(`it.skip('c', () => {})`),
      ci: 'true',
      exit: 1,
      line: '2 passed, 1 failed',
    },
    { what: 'fails a run without tests', files: {}, exit: 1, line: '0 passed, 1 failed' },
  ])('$what', async ({ files, ci = '', exit, line }) => {
    expect(await lastLineOf(files, ci)).toEqual({ code: exit, line })
  })
})
