import { execFile } from 'node:child_process'
import { copyFile, cp, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, inject, it, type TestContext } from 'vitest'
import { buildRust } from '../../src/authoring/build/rust.ts'
import { type BuildOptions, type BuiltTool, QuickBuilds } from '../../src/authoring/build/tool-builder.ts'
import { LIMITS } from '../../src/contract/limits.ts'
import { gate } from '../../src/sandbox/admission/gate.ts'
import { COMPONENTS } from '../fixtures/components.ts'
import { finishedValue, runComponent } from '../fixtures/reference/run-component.ts'
import { uploadAndCall } from '../support/upload-and-call.ts'
import { embeddedMetadata } from '../fixtures/reference/tool-metadata.ts'
import { EXAMPLES, outputOf, PINNED } from './rust-build.ts'

const run = promisify(execFile)
const TEMPLATE = join(EXAMPLES, '../src/authoring/templates/rust')
const MINUTES = 60_000
const KB = 1000
/** What an example of a tool may have (the template's profile). */
const MOST_KB = 200

let folder: string
let tool: string
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'brain-rust-builder-')))
  tool = join(folder, 'first-tool')
  await cp(TEMPLATE, tool, { recursive: true })
  const source = `{ path = ${JSON.stringify(join(EXAMPLES, 'brain-tool'))} }`
  const values: Readonly<Record<string, string>> = {
    name: 'first-tool',
    name_snake: 'first_tool',
    package_source: source,
  }
  for (const file of ['Cargo.toml', 'src/lib.rs', 'tool.json']) {
    const text = await readFile(join(tool, file), 'utf8')
    await writeFile(
      join(tool, file),
      text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => values[key]!),
    )
  }
  // The same versions, so that what they are compiled to is there already.
  await copyFile(join(EXAMPLES, 'Cargo.lock'), join(tool, 'Cargo.lock'))
})
afterAll(() => rm(folder, { recursive: true }))

const build = inject('rustBuild')

/** What cargo needs to find all that the build of the examples has compiled, and to compile only what is new. */
async function environment(): Promise<Record<string, string | undefined>> {
  const registry = join(process.env['CARGO_HOME'] ?? join(homedir(), '.cargo'), 'registry/src')
  const crates = (await readdir(registry)).map((name) => `--remap-path-prefix=${join(registry, name)}=/crates`)
  return {
    ...process.env,
    BRAIN_RUST_TOOLCHAIN: build?.compiler === 'pinned' ? PINNED : undefined,
    CARGO_NET_OFFLINE: 'true',
    CARGO_TARGET_DIR: join(EXAMPLES, 'target'),
    CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS: [`--remap-path-prefix=${dirname(EXAMPLES)}=/brain`, ...crates].join(' '),
  }
}

async function built(more: Pick<BuildOptions, 'quick' | 'onLikely'> = {}, source = tool) {
  const lines: string[] = []
  const options = { outDirectory: join(folder, 'out'), onProgress: (line: string) => lines.push(line), ...more }
  const tools = await buildRust(source, { ...options, env: await environment() })
  return { tools, lines }
}

/** Whether the compiler is there; waits until it has made what all of them share. */
async function isReady(context: TestContext): Promise<boolean> {
  if (build !== undefined) return outputOf(build).then(() => true)
  const reason = `there is no Rust for wasm32-wasip2 here. Run ${EXAMPLES}/setup-toolchain.sh ${PINNED} to have it`
  if (process.env['CI'] === 'true') throw new Error(`NOT CHECKED, and CI must: ${reason}`)
  process.stderr.write(`\nNOT CHECKED: building tools in Rust. ${reason}\n\n`)
  context.skip(reason)
  return false
}

describe('brain build of a tool in Rust', { timeout: 10 * MINUTES }, () => {
  it('makes a component of the template, which says what it is, passes the gate and runs', async (context) => {
    if (!(await isReady(context))) return
    const { tools, lines } = await built()
    expect(tools).toEqual([
      { name: 'first_tool', component: join(folder, 'out/first_tool.wasm'), bytes: expect.any(Number) },
    ])
    const [{ component, bytes }] = tools as [(typeof tools)[0]]
    expect(lines).toContain('reading the schemas of the types')
    expect(lines.some((line) => /^\s+Compiling first-tool /.test(line))).toBe(true)
    expect(lines.at(-1)).toBe(`wrote ${component} (${Math.ceil(bytes / KB)} kB)`)
    expect(bytes).toBeLessThan(MOST_KB * KB)
    const binary = await readFile(component)
    expect(gate(binary, { coreInstances: LIMITS.coreInstances.default }).metadata?.length).toBeGreaterThan(100)
    const [metadata] = embeddedMetadata(binary)
    expect(metadata).toMatchObject({
      name: 'first_tool',
      description: 'Greet somebody by name.',
      input_schema: {
        additionalProperties: false,
        properties: { times: { default: 1, minimum: 1, maximum: 10, description: 'How often' } },
        required: ['name'],
      },
      output_schema: { required: ['text', 'letters'] },
    })
    // The template comes with what its types say.
    const template = await readFile(join(TEMPLATE, 'tool.json'), 'utf8')
    expect(metadata).toEqual(JSON.parse(template.replace('{{name_snake}}', 'first_tool')))

    const cases = JSON.parse(await readFile(join(tool, 'cases.json'), 'utf8')) as readonly Case[]
    expect(cases.length).toBeGreaterThan(2)
    for (const { name, input, expect: expected } of cases) {
      const result = await runComponent({ component, input })
      if (expected.outcome.status === 'ok') expect(finishedValue(result), name).toEqual(expected.outcome.value)
      else expect(result.end, name).toMatchObject({ type: 'failed', code: expected.outcome.error?.code })
      const events = result.calls.filter(({ method }) => method === 'emit')
      const emitted = events.map(({ kind, text }) => ({ kind, payload: JSON.parse(text!) as unknown }))
      if (expected.events !== undefined) expect(emitted, name).toEqual(expected.events)
    }
    expect(await uploadAndCall(component, { name: 'Ada' })).toEqual({ text: 'Hello, Ada!', letters: 3 })
  })

  it('has unit tests that pass, the one of tool.json among them', async (context) => {
    if (!(await isReady(context))) return
    const env = await environment()
    const flags = ['lto=off', 'linker-plugin-lto=no', 'opt-level=0', 'codegen-units=16', 'debug-assertions=yes']
    const compiled = {
      ...env,
      ...(build?.compiler === 'pinned' && { RUSTC: join(PINNED, 'bin/rustc') }),
      CARGO_ENCODED_RUSTFLAGS: [...flags, 'panic=unwind'].map((flag) => `-C${flag}`).join('\x1f'),
    }
    const { stdout: facts } = await run(compiled.RUSTC ?? 'rustc', ['-vV'])
    const host = /^host: (\S+)$/m.exec(facts)![1]!
    const target = build?.compiler === 'pinned' ? await pinnedTarget() : join(EXAMPLES, 'target')
    const parameters = ['test', '--lib', '--release', '--target', host, '--target-dir', target]
    const { stdout } = await run('cargo', parameters, { cwd: tool, env: compiled })
    expect(stdout).toContain('test tool_json_is_what_the_types_say ... ok')
    expect(stdout).toMatch(/test result: ok\. 3 passed; 0 failed/)
  })

  it('brings tool.json up to date when the types change, also where it is quick', async (context) => {
    if (!(await isReady(context))) return
    const source = join(tool, 'src/lib.rs')
    const text = await readFile(source, 'utf8')
    await writeFile(source, text.replace('/// How often', '/// How many times').replace('times: usize', 'times: u8'))
    await writeFile(source, (await readFile(source, 'utf8')).replace('; times]', '; times.into()]'))
    const quick = new QuickBuilds()
    const likely: unknown[] = []
    const onLikely = async ([one]: readonly BuiltTool[]): Promise<void> => {
      likely.push(embeddedMetadata(await readFile(one!.component))[0])
    }
    const { tools } = await built({ quick, onLikely: (foreseen) => void onLikely(foreseen) })
    const [metadata] = embeddedMetadata(await readFile(tools[0]!.component))
    expect(metadata).toHaveProperty('input_schema.properties.times.description', 'How many times')
    expect(JSON.parse(await readFile(join(tool, 'tool.json'), 'utf8'))).toEqual(metadata)
    // What was made first said what the types had said before; the next time that is what is made.
    expect(likely).toEqual([expect.not.objectContaining({ input_schema: metadata?.['input_schema'] })])
    await built({ quick, onLikely: (foreseen) => void onLikely(foreseen) })
    await expect.poll(() => likely[1]).toEqual(metadata)
    const result = await runComponent({ component: tools[0]!.component, input: { name: 'Ada', times: 2 } })
    expect(finishedValue(result)).toEqual({ text: 'Hello, Ada! Hello, Ada!', letters: 3 })
  })

  it('says what the compiler says about a source that it does not take', async (context) => {
    if (!(await isReady(context))) return
    const source = join(tool, 'src/lib.rs')
    const text = await readFile(source, 'utf8')
    await writeFile(source, text.replace('#[derive(JsonSchema, Serialize)]', '#[derive(Serialize)]'))
    await expect(built()).rejects.toThrow(
      new RegExp(
        `^Cannot build "${RegExp.escape(tool)}": cargo test failed with exit code 101\\n[^]*Greeting[^]*JsonSchema`,
      ),
    )
    await writeFile(source, text)
  })

  it('and plain cargo says what to do where tool.json is missing', async (context) => {
    if (!(await isReady(context))) return
    await rm(join(tool, 'tool.json'))
    const env = await environment()
    const rustc = build?.compiler === 'pinned' ? { RUSTC: join(PINNED, 'bin/rustc') } : {}
    const target = build?.compiler === 'pinned' ? await pinnedTarget() : join(EXAMPLES, 'target')
    // What it depends on is there from the first build; `check` would make it in another form.
    const parameters = ['build', '--release', '--target', 'wasm32-wasip2', '--target-dir', target]
    await expect(run('cargo', parameters, { cwd: tool, env: { ...env, ...rustc } })).rejects.toMatchObject({
      stderr: expect.stringContaining("there is no tool.json, which holds the tool's schemas: `brain build` writes it"),
    })
  })

  it('is stopped by its signal', async (context) => {
    if (!(await isReady(context))) return
    const controller = new AbortController()
    const onProgress = (): void => controller.abort(new Error('stopped'))
    const options = { outDirectory: join(folder, 'out'), onProgress, signal: controller.signal }
    await expect(buildRust(tool, { ...options, env: await environment() })).rejects.toThrow(/^stopped$/)
  })
})

type Case = {
  readonly name: string
  readonly input: unknown
  readonly expect: {
    readonly outcome: { readonly status: string; readonly value?: unknown; readonly error?: { readonly code: string } }
    readonly events?: readonly unknown[]
  }
}

async function pinnedTarget(): Promise<string> {
  const { stdout } = await run('sh', ['-c', `sha256sum ${JSON.stringify(`${PINNED}/complete`)} | cut -c 1-12`])
  return join(EXAMPLES, 'target', stdout.trim())
}

describe('what is missing for tools in Rust', () => {
  const refused = (env: Record<string, string>, source = tool) =>
    expect(buildRust(source, { outDirectory: join(folder, 'out'), onProgress: () => undefined, env })).rejects.toThrow

  it('is named with the command that brings it', async () => {
    const what = `Cannot build ${JSON.stringify(tool)}: `
    await refused({ PATH: folder })(
      `${what}there is no Rust on the PATH; install Rust 1.85 or newer from https://rustup.rs, then run: rustup target add wasm32-wasip2`,
    )
    await refused({ PATH: folder, BRAIN_RUST_TOOLCHAIN: folder })(
      `${what}BRAIN_RUST_TOOLCHAIN is ${JSON.stringify(folder)}, which holds no complete toolchain; run: examples-rust/setup-toolchain.sh ${folder}`,
    )
  })

  it.each([
    ['release: 1.84.1\nhost: any', /: this Rust is 1\.84; install Rust 1\.85 or newer from/],
    ['nothing', /: the rustc on the PATH is none; install Rust/],
    [
      'release: 1.85.0\nhost: any',
      /: this Rust has no standard library for wasm32-wasip2; run: rustup target add wasm32-wasip2\. Where/,
    ],
  ])('is told of a compiler that says %j', async (facts, reason) => {
    const bin = await mkdtemp(join(folder, 'bin-'))
    await writeFile(join(bin, 'rustc'), `#!/bin/sh\nprintf '${facts.replace('\n', String.raw`\n`)}\\n'\n`, {
      mode: 0o755,
    })
    await refused({ PATH: bin })(reason)
  })

  it.for([
    ['depends on nothing', '[lib]\ncrate-type = ["cdylib"]\n'],
    ['makes no component', '[dependencies]\nbrain-tool = "0.1"\n'],
  ])('is told of a package that %s', { timeout: 10 * MINUTES }, async ([, more], context) => {
    if (!(await isReady(context))) return
    const source = await mkdtemp(join(folder, 'package-'))
    await cp(join(TEMPLATE, 'src'), join(source, 'src'), { recursive: true })
    await writeFile(join(source, 'Cargo.toml'), `[package]\nname = "a"\nversion = "0.1.0"\n${more}`)
    await expect(built({}, source)).rejects.toThrow(
      /: no package in it is a tool; one has `crate-type = \["cdylib"\]` in \[lib\], and brain-tool among its/,
    )
  })
})

it('docs/rust.md tells the sizes of the examples, all of them small', async () => {
  const page = await readFile(join(EXAMPLES, '../docs/rust.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) kB \| (\d+) kB \|$/gm)]
  expect(rows.map(([, name]) => name)).toEqual(['wordcount', 'inspect', 'summarize'])
  for (const [, name, size, gzipped] of rows) {
    const path = `${COMPONENTS}/${name}.wasm`
    const { size: bytes } = await stat(path)
    expect(Math.round(bytes / KB), name).toBe(Number(size))
    // Programs that gzip differ a little.
    const packed = gzipSync(await readFile(path), { level: 9 }).length / KB
    expect(Math.abs(packed / Number(gzipped) - 1), name).toBeLessThan(0.1)
    expect(bytes, name).toBeLessThan(MOST_KB * KB)
  }
})
