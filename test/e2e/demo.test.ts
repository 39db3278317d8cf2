import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { clipped, printable } from '../../src/cli/printable.ts'
import { Timeline } from '../../src/cli/demo/timeline.ts'
import { descendantsOf, livingOf, type Process } from '../support/processes.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUILD_MS = 240_000
const hasPython = spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0

/** A demo in a process of its own, with a temporary directory that shows what it leaves behind. */
class Demo {
  readonly #child
  out = ''
  err = ''
  readonly #seen = new Map<number, Process>()
  readonly ended: Promise<number | null>

  constructor(directory: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(ROOT, 'src/cli/demo.ts'), ...args],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, TMPDIR: directory, BRAIN_API_TOKEN: 'not ours', ...env },
      },
    )
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    this.ended = once(this.#child, 'close').then(([code]) => code as number | null)
  }

  async until(text: string): Promise<void> {
    while (!this.out.includes(text)) {
      if (this.#child.exitCode !== null) throw new Error(`the demo ended before "${text}":\n${this.out}${this.err}`)
      await Promise.race([once(this.#child.stdout, 'data'), this.ended])
    }
  }

  /** Notes everything that runs below it now. */
  look(): void {
    for (const found of descendantsOf(this.#child.pid ?? 0)) this.#seen.set(found.pid, found)
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  get seen(): readonly Process[] {
    return [...this.#seen.values()]
  }
}

/** Lines of the timeline as [sequence, record, the rest]. */
function timelineOf(out: string): [number, string, string][] {
  return [...out.matchAll(/^ *(\d+) +\d+ ms +(?:\+\d+ ms +)?(\w+) *(.*)$/gm)].map(
    ([, sequence, type = '', rest = '']) => [Number(sequence), type, rest],
  )
}

const typesOf = (out: string): string[] => timelineOf(out).map(([, type]) => type)

describe('demo', () => {
  let directory = ''
  beforeEach(async () => void (directory = await mkdtemp(join(tmpdir(), 'brain-demo-test-'))))
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('shows a turn of the Rust tool record by record, and leaves nothing behind', async () => {
    const demo = new Demo(directory, ['--no-python'])
    await demo.until('Timeline')
    demo.look()
    expect(demo.seen.length).toBeGreaterThanOrEqual(2)
    expect(await demo.ended, demo.err).toBe(0)
    const lines = timelineOf(demo.out)
    expect(lines.map(([sequence]) => sequence)).toEqual(lines.map((_, index) => index + 1))
    const types = typesOf(demo.out)
    const expected = ['session_creation_started', 'session_creation_ended', 'turn_started', 'model_call_started']
    const call = ['tool_call_started', 'inspect_started', 'tool_result_emitted', 'tool_call_ended', 'turn_ended']
    let at = -1
    for (const type of [...expected, ...call]) expect((at = types.indexOf(type, at + 1)), type).toBeGreaterThan(-1)
    expect(types.at(-1)).toBe('turn_ended')
    expect(demo.out).toMatch(/\nTranscript\n[^]*user: What is in[^]*assistant calls inspect[^]*result: [^]*sales\.csv/)
    expect(demo.out.trimEnd()).toMatch(/The demo took \d+\.\d s$/)
    expect(livingOf(demo.seen)).toEqual([])
    expect(await readdir(directory)).toEqual([])
  })

  it.runIf(hasPython)('calls the Python tool too where python3 can build it', { timeout: BUILD_MS }, async () => {
    const demo = new Demo(directory, [])
    expect(await demo.ended, demo.err).toBe(0)
    const calls = timelineOf(demo.out).filter(([, type]) => type === 'tool_call_started')
    expect(calls.map(([, , rest]) => rest.split(' ')[0])).toEqual(['inspect', 'csv_report'])
    expect(typesOf(demo.out)).toContain('csv_read')
    expect(demo.out).toContain('| **all** | 5 | 780.75 |')
    expect(await readdir(directory)).toEqual([])
  })

  it('says so and goes on when nothing can build the Python tool', async () => {
    const empty = join(directory, 'empty')
    await mkdir(empty)
    // Without a component from an earlier build either: the cache of the checkout is not used.
    const demo = new Demo(directory, ['--python-cache', join(directory, 'cache')], { PATH: empty })
    expect(await demo.ended, demo.err).toBe(0)
    expect(demo.out).toMatch(/left out: Cannot build Python tools: there is no python3/)
    expect(typesOf(demo.out).filter((type) => type === 'tool_call_started')).toHaveLength(1)
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends in order and leaves nothing behind on %s', async (signal, code) => {
    const demo = new Demo(directory, ['--no-python'])
    await demo.until('Uploading inspect')
    demo.look()
    demo.kill(signal)
    expect(await demo.ended).toBe(code)
    expect(demo.err).toContain(`Stopped by ${signal}`)
    expect(livingOf(demo.seen)).toEqual([])
    expect(await readdir(directory)).toEqual([])
  })

  it('leaves server and data with --keep, and says how to end them', async () => {
    const demo = new Demo(directory, ['--no-python', '--keep'])
    expect(await demo.ended, demo.err).toBe(0)
    const [, url = '', pid = ''] = /left up at (\S+), process (\d+)/.exec(demo.out) ?? []
    try {
      const { sessions } = (await (await fetch(`${url}/v1/sessions`)).json()) as { sessions: unknown[] }
      expect(sessions).toHaveLength(1)
      expect(demo.out).toMatch(/To end it: kill \d+ && rm -r \S+/)
      expect(await readdir(directory)).toHaveLength(1)
    } finally {
      const server = descendantsOf(Number(pid))
      process.kill(Number(pid), 'SIGTERM')
      while (livingOf(server).length > 0) await fetch(`${url}/health/live`).catch(() => undefined)
    }
  })

  it('refuses with a reason and a remedy on a machine without a box level', async () => {
    const demo = new Demo(directory, [], { NODE_OPTIONS: '--no-experimental-ffi' })
    expect(await demo.ended).toBe(1)
    expect(demo.err).toMatch(/this machine offers no sandbox[^]*landlock/)
    expect(await readdir(directory)).toEqual([])
  })
})

describe('printable()', () => {
  it('keeps text and takes out what a terminal would obey', () => {
    expect(printable('a\u001b[31mred\u009b0m\u0007\u202eb\r\nc é 漢 😀')).toBe('a [31mred 0m b c é 漢 😀')
  })

  it('is applied to everything that a timeline shows of a guest', () => {
    const line = new Timeline().line({
      sequence: 1,
      recorded_at_ms: 5,
      event_type: 'tool_call_started',
      data: { tool: 'x\u001b]0;title\u0007', invocation: { input: '\u001b[2J' } },
    })
    // eslint-disable-next-line no-control-regex -- that there is none is what is tested
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })
})

describe('clipped()', () => {
  it('never cuts a character in two', () => {
    expect(clipped('ab😀cd', 4)).toBe('ab…')
    expect(clipped('abc', 3)).toBe('abc')
  })
})
