import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { CACHE, COMPONENTS } from '../fixtures/components.ts'
import { buildRawComponent, RAW_COMPONENTS } from '../fixtures/guests-raw/build.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'

const run = promisify(execFile)
const EXAMPLES = fileURLToPath(new URL('../../examples-rust', import.meta.url))
const GUESTS = fileURLToPath(new URL('../fixtures/guests-rust', import.meta.url))
const PINNED = process.env['BRAIN_RUST_TOOLCHAIN'] ?? `${CACHE}/rust-toolchain`
const MINUTES = 60_000

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const works = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )

async function sums(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(`${COMPONENTS}/SHA256SUMS`, 'utf8')
  return new Map(
    text
      .trim()
      .split('\n')
      .map((line) => line.split('  '))
      .map(([sum, name]) => [name!, sum!]),
  )
}

/** `pinned` gives the committed bytes; another compiler gives a component that works alike. */
async function rustBuild(): Promise<'pinned' | 'stock' | undefined> {
  if (await works(access(`${PINNED}/complete`))) return 'pinned'
  const query = ['--print', 'target-libdir', '--target', 'wasm32-wasip2']
  const directory = await run('rustc', query).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
  return directory !== '' && (await works(access(directory))) ? 'stock' : undefined
}

/** A check that this machine cannot make must not look like one that passed. */
function notRun(context: TestContext, what: string): void {
  const reason = `${what}: there is no Rust for wasm32-wasip2 here. Run ${EXAMPLES}/setup-toolchain.sh ${PINNED} to have it`
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${reason}`)
  process.stderr.write(`\nNOT CHECKED: ${reason}\n\n`)
  context.skip(reason)
}

describe('committed components', () => {
  it('SHA256SUMS names every committed component, with its digest', async () => {
    const files = (await readdir(COMPONENTS)).filter((name) => name.endsWith('.wasm'))
    const digests = files.map(async (name) => [name, sha256(await readFile(`${COMPONENTS}/${name}`))] as const)
    expect(new Map(await Promise.all(digests))).toEqual(await sums())
  })

  it.each(RAW_COMPONENTS)('%s.wasm is what its text makes', async (name) => {
    expect(sha256(await buildRawComponent(name))).toBe((await sums()).get(`${name}.wasm`))
  })

  describe('from Rust', () => {
    let out: string
    let build: 'pinned' | 'stock' | undefined
    beforeAll(async () => {
      build = await rustBuild()
      out = await mkdtemp(`${tmpdir()}/brain-rebuilt-`)
    })
    afterAll(() => rm(out, { recursive: true, force: true }))

    it('are what their sources make', { timeout: 10 * MINUTES }, async (context) => {
      if (build === undefined) return notRun(context, 'whether the committed components come from their sources')
      const toolchain = build === 'pinned' ? ['--toolchain', PINNED] : []
      for (const workspace of [EXAMPLES, GUESTS])
        await run(`${EXAMPLES}/build.sh`, [...toolchain, '--out', out, workspace])
      const made = (await readdir(out)).toSorted()
      const committed = [...(await sums()).keys()].filter(
        (name) => !RAW_COMPONENTS.some((raw) => name === `${raw}.wasm`),
      )
      expect(made).toEqual(committed.toSorted())
      for (const name of made) {
        const [rebuilt, kept] = await Promise.all([readFile(`${out}/${name}`), readFile(`${COMPONENTS}/${name}`)])
        expect(embeddedMetadata(rebuilt), name).toEqual(embeddedMetadata(kept))
        if (build === 'pinned') expect(sha256(rebuilt), name).toBe(sha256(kept))
      }
      if (build === 'stock')
        process.stderr.write('\nNOT CHECKED: the bytes of the components (not the pinned compiler)\n\n')
    })

    it('are refused a toolchain of another recipe, and one that is not complete', async (context) => {
      if (build === undefined) return notRun(context, 'whether another toolchain is refused')
      const toolchain = await mkdtemp(`${tmpdir()}/brain-toolchain-`)
      const refused = async () =>
        expect(run(`${EXAMPLES}/build.sh`, ['--toolchain', toolchain])).rejects.toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/holds no complete toolchain of the recipe .*; run .*setup-toolchain\.sh /),
        })
      try {
        await refused()
        await writeFile(`${toolchain}/complete`, '0 rust 1.0.0\n')
        await refused()
      } finally {
        await rm(toolchain, { recursive: true })
      }
    })

    it('pass the unit tests of their crates', { timeout: 10 * MINUTES }, async (context) => {
      if (build === undefined) return notRun(context, 'the unit tests of the Rust examples')
      const { stdout } = await run('cargo', ['test', '--quiet', '--locked'], { cwd: EXAMPLES })
      expect(stdout).toMatch(/test result: ok\. [1-9]\d* passed; 0 failed/)
    })
  })
})
