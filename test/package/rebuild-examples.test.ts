import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { glob, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, it, type TestContext } from 'vitest'
import { COMPONENTS } from '../fixtures/components.ts'
import { buildRawComponent, RAW_COMPONENTS } from '../fixtures/guests-raw/build.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'
import { soakOr } from '../support/soak.ts'
import { EXAMPLES, outputOf, PINNED } from './rust-build.ts'

const run = promisify(execFile)
const MINUTES = 60_000

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

async function sums(folder = COMPONENTS): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(`${folder}/SHA256SUMS`, 'utf8')
  return new Map(
    text
      .trim()
      .split('\n')
      .map((line) => line.split('  '))
      .map(([sum, name]) => [name!, sum!]),
  )
}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const GENERATE = `${EXAMPLES}/bindings/generate.sh`

/** The generator takes longer to compile than all the rest. */
const FULL_CHECKS = ['reach it through what the generator makes now'].slice(0, soakOr(1, 0))

const bindingsBelow = async (folder: string): Promise<readonly string[]> =>
  (
    await Array.fromAsync(glob('{examples-rust,test/fixtures/guests-rust}/*/src/bindings.rs', { cwd: folder }))
  ).toSorted()

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
    const build = inject('rustBuild')

    it(
      'are what their sources make, and the unit tests of their crates pass',
      { timeout: 10 * MINUTES },
      async (context) => {
        if (build === undefined) return notRun(context, 'whether the committed components come from their sources')
        expect(await outputOf(build)).toMatch(/test result: ok\. [1-9]\d* passed; 0 failed/)
        const out = `${build.directory}/components`
        const made = (await readdir(out)).toSorted()
        const committed = [...(await sums()).keys()].filter(
          (name) => !RAW_COMPONENTS.some((raw) => name === `${raw}.wasm`),
        )
        expect(made).toEqual(committed.toSorted())
        for (const name of made) {
          const [rebuilt, kept] = await Promise.all([readFile(`${out}/${name}`), readFile(`${COMPONENTS}/${name}`)])
          expect(embeddedMetadata(rebuilt), name).toEqual(embeddedMetadata(kept))
          if (build.compiler === 'pinned') expect(sha256(rebuilt), name).toBe(sha256(kept))
        }
        if (build.compiler === 'stock')
          process.stderr.write('\nNOT CHECKED: the bytes of the components (not the pinned compiler)\n\n')
      },
    )

    it('reach the host through bindings that were generated from this WIT by this generator', async () => {
      const written = await sums(`${EXAMPLES}/bindings`)
      expect([...written.keys()].filter((name) => name.endsWith('/bindings.rs')).toSorted()).toEqual(
        await bindingsBelow(REPOSITORY),
      )
      for (const name of ['wit/agentloop.wit', 'wit/tool.wit', 'examples-rust/bindings/src/main.rs'])
        expect([...written.keys()]).toContain(name)
      for (const [name, sum] of written)
        expect(sha256(await readFile(`${REPOSITORY}/${name}`)), `${name}: ${GENERATE}`).toBe(sum)
    })

    it.each(FULL_CHECKS)('%s', { timeout: 10 * MINUTES }, async () => {
      const out = await mkdtemp(`${tmpdir()}/brain-bindings-`)
      try {
        await run(GENERATE, [out], { env: { ...process.env, RUSTFLAGS: '' } })
        const names = await bindingsBelow(REPOSITORY)
        expect(await bindingsBelow(out)).toEqual(names)
        for (const name of names)
          expect(await readFile(`${out}/${name}`, 'utf8'), name).toBe(await readFile(`${REPOSITORY}/${name}`, 'utf8'))
      } finally {
        await rm(out, { recursive: true })
      }
    })

    it.each([
      [['/nowhere'], /there is no folder \/nowhere$/],
      [['--toolchain', '/nowhere'], /there is no folder \/nowhere$/],
      [['--out'], /--out needs a folder$/],
      [['--what'], /unknown option --what$/],
    ])('are not built with %j, which is said once', async (given, reason) => {
      await expect(run(`${EXAMPLES}/build.sh`, given, { timeout: 10_000 })).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          new RegExp(`^Cannot build the Rust tools: ${reason.source.replace('$', '\\n$')}`),
        ),
      })
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
  })
})
