import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fencedBlocks, type FencedBlock } from './fenced-blocks.ts'
import { freePort, PageShell } from './page-shell.ts'
import { PAGES, readPage } from './pages.ts'

/** Commands that a page shows and this file does not run, with who does. */
const RUN_ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^npm ci && npm test$/, 'is the run that this test is part of'],
  [/^(BRAIN_\w+=\S+ )+node examples\/(\w+\/server|session)\.mjs$/, 'test/e2e/tool-services.test.ts'],
  [/^npm ci && node examples\/sandbox\/build\.mjs$/, 'test/e2e/tool-services.test.ts, which runs its build'],
  [/^npm ci && npm run demo$/, 'the test of the demo'],
  [/^npm (ci|test|run (check|format|lint|types|unit|soak|bench|build|dev|docs))\b/, 'for the developer, and for CI'],
  [
    /^npx brain(-tools|-tool-runtime)? ?|^npm install (-g )?@aexhq/,
    'test/package/tarballs.test.ts, from the packed files',
  ],
  [
    /^(cd hello && npm install|npm test|brain (new ts hello|build tool\.ts|test dist\/hello\.wasm))$/,
    'test/package/tarballs.test.ts, from the packed files',
  ],
  [/^docker run |^brain doctor$/, 'whoever has no Linux; brain doctor: test/e2e/doctor-audit.test.ts'],
  [/^npm run -s example examples\/[a-z-]+\/main\.ts$/, 'examples/README.md'],
  [/^brain (new rust|build|run|test) /, 'test/package/rust-builder.test.ts, and where the commands are tested'],
  [/^rustup target add |^cargo |build\.sh|setup-toolchain\.sh/, 'test/package, where the compiler is there'],
  [/^(npm install|BRAIN_STARLINGMONKEY=).*starlingmonkey/, 'whoever asks for it: the test in test/e2e/foreign.test.ts'],
  [/^brain build \S*tool\.py$/, 'test/package/python-template.test.ts, which calls what the command calls'],
  [
    /^(brain new|python3 -m venv|pip install) |^brain (run|test) \S*my-tool|^python -m unittest$/,
    'test/package/python-template.test.ts',
  ],
  [/^node \S*build\.mjs agentloop$/, 'test/e2e/agentloops.test.ts, which calls what the command calls'],
  [
    /^curl .*\/v1\/(tools|agentloops) .*--data-binary @\S*(dist|target)\//,
    'README.md, with a component that needs no compiler',
  ],
]

/** Whether output is as a page shows it: `…` stands for anything, white space for any white space. */
function pattern(shown: string): RegExp {
  const parts = shown.trim().split('…')
  const escaped = parts.map((part) => RegExp.escape(part).replaceAll(/(?:\\n|\\x20|\s)+/g, '\\s+'))
  return new RegExp(`^\\s*${escaped.join('[^]*?')}\\s*$`)
}

/** How a program of a page is run, by its language, and what it is called where the page does not say. */
const PROGRAMS: Readonly<Record<string, readonly [string, string]>> = {
  ts: ['node --disable-warning=ExperimentalWarning --import ./test/docs/resolve-packages.ts', 'example.mts'],
  python: ['PYTHONPATH=examples-python/brain-patterns/src PYTHONDONTWRITEBYTECODE=1 python3', 'example.py'],
}

/**
 * Writes a program of a page, marked `run FILE`, where later ones can import it.
 * @returns the command that runs it; a block of the shell is its own
 */
async function program(directory: string, { language, marks, text }: FencedBlock): Promise<string> {
  const [command, file] = PROGRAMS[language] ?? []
  if (file === undefined) return text
  const path = join(directory, marks.find((mark) => mark !== 'run') ?? file)
  await writeFile(path, text)
  return `${command} ${path}`
}

async function follow(page: string, blocks: readonly FencedBlock[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'brain-docs-'))
  try {
    await using shell = new PageShell(directory, await freePort())
    let last = ''
    for (const block of blocks) {
      const { text, marks, line } = block
      const where = `${page}:${line}`
      if (marks.includes('output')) expect(last, `output at ${where}`).toMatch(pattern(text))
      else if (marks.includes('background')) last = await shell.start(text)
      else {
        const { out, code } = await shell.run(await program(directory, block))
        expect(code, `${where} printed:\n${out}`).toBe(0)
        last = out
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

describe('commands of the documentation', () => {
  const blocksOf = (page: string): FencedBlock[] => fencedBlocks(readPage(page))
  const toFollow = PAGES.map((page) => {
    const blocks = blocksOf(page).filter(({ marks }) => marks.includes('run') || marks.includes('output'))
    return { page, blocks }
  }).filter(({ blocks }) => blocks.length > 0)

  it.each(toFollow)('$page does what it says, block after block', ({ page, blocks }) => follow(page, blocks))

  it('are each run here, or named with who runs them', () => {
    const lost = PAGES.flatMap((page) =>
      blocksOf(page)
        .filter(({ language, marks }) => ['sh', 'bash', 'shell'].includes(language) && !marks.includes('run'))
        .flatMap(({ text, line }) =>
          text
            .replaceAll(/\\\n\s*/g, '')
            .split('\n')
            .map((command) => command.replace(/\s+#.*$/, '').trim())
            .filter((command) => command !== '' && !RUN_ELSEWHERE.some(([known]) => known.test(command)))
            .map((command) => `${page}:${line}: ${command}`),
        ),
    )
    expect(lost).toEqual([])
  })

  it('stand in README.md, which takes a reader from the start of a server to its journal', () => {
    const marks = blocksOf('README.md').flatMap((block) => block.marks)
    expect(marks.filter((mark) => mark === 'background')).toHaveLength(1)
    expect(marks.filter((mark) => mark === 'run').length).toBeGreaterThan(4)
  })
})
