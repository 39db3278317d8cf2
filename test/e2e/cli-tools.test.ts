import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inspectComponent } from '../../src/cli/inspect.ts'
import { runTool, type RunFlags } from '../../src/cli/run.ts'
import { testTool } from '../../src/cli/test.ts'
import type { JsonObject } from '../../src/kernel/json.ts'
import { COMPONENTS } from '../fixtures/components.ts'

const command = join(import.meta.dirname, '../../src/cli/brain.ts')
const file = (name: string): string => join(COMPONENTS, `${name}.wasm`)

let directory = ''
beforeAll(() => (directory = mkdtempSync(join(tmpdir(), 'brain-cli-'))))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  XDG_CACHE_HOME: join(directory, 'cache'),
  ...more,
})

type Ran = { readonly code: number; readonly out: readonly string[]; readonly notes: readonly string[] }

async function printed(
  work: (outputs: { out(line: string): void; note(line: string): void }) => Promise<number>,
): Promise<Ran> {
  const out: string[] = []
  const notes: string[] = []
  const code = await work({ out: (line) => void out.push(line), note: (line) => void notes.push(line) })
  return { code, out, notes }
}

const run = (name: string, flags: RunFlags, variables: Record<string, string> = {}): Promise<Ran> =>
  printed((outputs) => runTool(env(variables), file(name), flags, outputs))

const play = (steps: unknown, flags: RunFlags = {}, variables = {}): Promise<Ran> =>
  run('outcomes', { input: JSON.stringify({ steps }), ...flags }, variables)

/** A duration is whatever it is. */
const untimed = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/ \(\d+ ms\)$/, ''))

describe('a command', () => {
  it('keeps what Node compiled in the directory of its user, and nothing where others could put something', async () => {
    const shared = mkdtempSync(join(directory, 'shared-'))
    const variables = { env: env({ TMPDIR: shared }), stdio: 'ignore' } as const
    const child = spawn(process.execPath, [command, 'inspect', '--schema', 'mcp', file('wordcount')], variables)
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(globSync('cache/brain/modules/*/*', { cwd: directory })).not.toEqual([])
    expect(globSync('**/*', { cwd: shared })).toEqual([])
  })
})

describe('brain run', () => {
  it('prints events, results and the outcome, and what the tool wrote besides', async () => {
    const { code, out, notes } = await play([
      { do: 'emit', kind: 'began', payload: { n: 1 } },
      { do: 'print', text: 'a line\u001b[2J' },
      { do: 'telemetry', record: { level: 'info' } },
      { do: 'emit_result', outcome: { status: 'ok', value: [1, 'two'] } },
      { do: 'finish', outcome: { status: 'ok', value: 'done' } },
    ])
    expect([code, untimed(out)]).toEqual([0, ['began {"n":1}', 'result [1,"two"]', 'result "done"', 'ok']])
    expect(notes.slice(0, 1)).toEqual(['stdout | a line [2J'])
    expect(notes.at(-1)).toBe('telemetry | {"level":"info"}')
  })

  it('prints records as they are journalled, and the outcome last, with --json', async () => {
    const { out } = await play(
      [
        { do: 'emit', kind: 'began', payload: 1 },
        { do: 'finish', outcome: null },
      ],
      { json: true },
    )
    const lines = out.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.map(({ event_type: type }) => type)).toEqual([
      'tool_call_started',
      'began',
      'tool_call_ended',
      undefined,
    ])
    const [first] = lines
    expect(lines.at(-1)).toMatchObject({
      type: 'outcome',
      sequence: first?.['sequence'],
      outcome: { status: 'ok', value: null },
    })
  })

  it.each([
    [
      'an error',
      [{ do: 'finish', outcome: { status: 'error', error: { code: 'no_luck', message: 'not today' } } }],
      3,
      'error no_luck: not today',
    ],
    ['a trap', [{ do: 'trap' }], 3, /^error tool_error: /],
    ['a deadline', [{ do: 'loop' }], 4, 'timeout'],
  ])('tells %s by its exit code', async (_what, steps, code, last) => {
    const ran = await play(steps, { deadline: '1s' })
    expect(ran.code).toBe(code)
    if (typeof last === 'string') expect(untimed(ran.out).at(-1)).toBe(last)
    else expect(ran.out.at(-1)).toMatch(last)
  })

  it('cancels the call on Ctrl-C, and ends with it', async () => {
    const input = JSON.stringify({ steps: [{ do: 'emit', kind: 'began', payload: 1 }, { do: 'loop' }] })
    const child = spawn(
      process.execPath,
      ['--no-warnings', command, 'run', file('outcomes'), '--input', input, '--deadline', '60s'],
      {
        env: { ...env(), NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      },
    )
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
      // To all processes of the terminal, as Ctrl-C is.
      if (out === 'began 1\n') process.kill(-(child.pid ?? 0), 'SIGINT')
    })
    let notes = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (notes += text))
    const [code] = await once(child, 'close')
    expect([code, out, notes]).toEqual([5, expect.stringMatching(/^began 1\ncancelled \(\d+ ms\)\n$/), ''])
  })

  it('gives the tool a directory of the user: to write, or to read', async () => {
    const workspace = join(directory, 'workspace')
    mkdirSync(workspace)
    const put = { input: '{"op":"put","path":"new.txt","text":"hello"}' }
    expect((await run('files', { ...put, workspace })).code).toBe(0)
    expect(readFileSync(join(workspace, 'new.txt'), 'utf8')).toBe('hello')
    writeFileSync(join(workspace, 'new.txt'), 'changed by hand')
    const get = { input: '{"op":"get","path":"new.txt"}', workspace: `${workspace}:ro` }
    expect((await run('files', get)).out.at(0)).toBe('result {"text":"changed by hand"}')
    const refused = await run('files', { ...put, workspace: `${workspace}:ro` })
    expect([refused.code, refused.out.at(-1)]).toEqual([3, expect.stringMatching(/^error io_error: /)])
    expect(readFileSync(join(workspace, 'new.txt'), 'utf8')).toBe('changed by hand')
    expect((await run('files', get)).code).toBe(0)
    const without = await run('files', put)
    expect([without.code, without.out.at(-1)]).toEqual([3, expect.stringMatching(/^error io_error: /)])
  })

  it('gives it secrets as files, and none without', async () => {
    const get = { input: '{"op":"get","path":"/secrets/KEY"}' }
    expect((await run('files', { ...get, secret: ['KEY'] }, { KEY: 'sesame' })).out[0]).toBe('result {"text":"sesame"}')
    expect((await run('files', get, { KEY: 'sesame' })).code).toBe(3)
  })

  it('lets it reach the origins that are named, and no other', async () => {
    const server = createServer((_request, response) => response.end('hi')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const probe = { input: JSON.stringify({ authority }) }
    const granted = await run('http-probe', { ...probe, net: [`http://${authority}`] })
    expect(granted.out.join('\n')).toMatch(/"status":200/)
    expect((await run('http-probe', probe)).out.join('\n')).not.toMatch(/"status":200/)
    server.close()
  })

  it('lets it ask a scripted model, and tells it when there is none', async () => {
    const steps = [
      { do: 'model', request: { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] } },
      { do: 'finish', outcome: { status: 'ok', value: '$log' } },
    ]
    const script = join(directory, 'script.json')
    writeFileSync(script, '[{"text":"hello there"}]')
    expect((await play(steps, { model: `scripted:@${script}` })).out.join()).toMatch(/hello there/)
    expect((await play(steps)).out.join()).toMatch(/give the command one with --model/)
  })

  it.each<[string, RunFlags, RegExp]>([
    ['no JSON', { input: '{' }, /^Cannot read --input: /],
    ['no such file', { input: '@/nowhere.json' }, /^Cannot read --input "\/nowhere.json": ENOENT/],
    ['no duration', { deadline: '5 seconds' }, /^Cannot use --deadline "5 seconds": write a duration such as 250ms/],
    ['no directory', { workspace: '/nowhere:ro' }, /^Cannot use --workspace "\/nowhere": there is no such directory/],
    ['no variable', { secret: ['ABSENT'] }, /^Cannot grant secret "ABSENT": set the variable ABSENT/],
    ['no origin', { net: ['example'] }, /^Cannot grant network access to "example": write an origin/],
    ['no model', { model: 'scripted' }, /^Cannot use --model "scripted": write scripted:@FILE or PROVIDER:NAME/],
    ['no key', { model: 'openai:gpt' }, /^Cannot use --model openai:gpt: name the variable that holds the key/],
    ['no script', { model: 'scripted:[]' }, /^Cannot use model.script: /],
  ])('refuses %s', async (_what, flags, message) => {
    await expect(run('wordcount', flags)).rejects.toThrow(message)
  })

  it('refuses what is no component, and keeps the next one', async () => {
    const text = join(directory, 'text.wasm')
    writeFileSync(text, 'hello')
    await expect(printed((outputs) => runTool(env(), text, {}, outputs))).rejects.toThrow(/it is not WebAssembly/)
    await expect(run('nowhere', {})).rejects.toThrow(/^Cannot read component .*ENOENT/)
  })

  it('goes on beside others of the same user, more than there are places in the cache, and leaves nothing', async () => {
    const own = { TMPDIR: directory }
    const all = await Promise.all(Array.from({ length: 6 }, () => run('wordcount', { input: '{"text":"a b"}' }, own)))
    expect(all.map(({ code }) => code)).toEqual(Array.from({ length: 6 }, () => 0))
    const kept = globSync(join(directory, 'cache/brain/place-*/*')).map((path) => path.split('/').at(-1))
    expect([...new Set(kept)]).toEqual(expect.arrayContaining(['artifacts', 'components', 'level.json', 'lock.sqlite']))
    expect(globSync(join(tmpdir(), 'brain-run-*'))).toEqual([])
  })
})

describe('brain inspect', () => {
  const inspect = (path: string) => printed((outputs) => inspectComponent(env(), path, { json: true }, outputs))

  it.each([
    ['wordcount', 'brain:tool/tool@0.2.0', ['--workspace, --scratch or --secret']],
    ['http-probe', 'brain:tool/tool@0.2.0', ['--workspace, --scratch or --secret', '--net']],
    ['agentloop', 'brain:agentloop/agentloop@0.2.0', ['--workspace, --scratch or --secret']],
  ])('says of %s what it is and what it may use', async (name, world, flags) => {
    const { out } = await inspect(file(name))
    const report = JSON.parse(out.join('')) as { grants: { flag: string }[]; metadata: { name: string } | null }
    expect(report).toMatchObject({
      file: `${name}.wasm`,
      admitted: true,
      world,
      bytes: readFileSync(file(name)).length,
    })
    expect(report.grants.map(({ flag }) => flag)).toEqual(flags)
    expect(report.metadata?.name).toBe(name === 'agentloop' ? undefined : name)
  })

  it.each(['openai', 'anthropic', 'mcp'])('prints the tool as %s takes it, and nothing else', async (schema) => {
    const { code, out } = await printed((outputs) => inspectComponent(env(), file('wordcount'), { schema }, outputs))
    const said = JSON.parse(out.join('\n')) as JsonObject
    const { name } = (said['function'] ?? said) as JsonObject
    expect([code, name]).toEqual([0, 'wordcount'])
  })

  it('refuses to print the schema for nobody, and of a tool without metadata', async () => {
    const inspected = (name: string, schema: string) => inspectComponent(env(), file(name), { schema })
    await expect(inspected('wordcount', 'gemini')).rejects.toThrow(/--schema is one of openai, anthropic, mcp/)
    await expect(inspected('extended-const', 'mcp')).rejects.toThrow(/it has no metadata/)
  })

  it('says why a server would refuse one, and exits 1', async () => {
    const core = join(directory, 'core.wasm')
    writeFileSync(core, Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))
    const { code, out } = await inspect(core)
    expect([code, JSON.parse(out.join(''))]).toEqual([
      1,
      expect.objectContaining({ admitted: false, refusal: expect.objectContaining({ fault: 'core_module' }) }),
    ])
  })
})

describe('brain test', () => {
  const cases = (text: string, ending = 'json'): string => {
    const path = join(directory, `cases.${ending}`)
    writeFileSync(path, text)
    return path
  }
  const test = (name: string, path: string): Promise<Ran> =>
    printed((outputs) => testTool(env(), file(name), { cases: path }, outputs))

  it('runs the cases of a YAML file, and says what is not as it should be', async () => {
    const ran = await test(
      'outcomes',
      cases(
        `
- name: all is well
  input: {steps: [{do: emit, kind: began, payload: {n: 1}}, {do: finish, outcome: {status: ok, value: 2}}]}
  expect: {outcome: {status: ok, value: 2}, events: [{kind: began, payload: {n: 1}}], results: [2]}
- name: an error
  input: {steps: [{do: finish, outcome: {status: error, error: {code: c, message: m}}}]}
  expect: {outcome: {status: error, error: {code: c}}}
- name: nothing fits
  input: {steps: [{do: emit, kind: other, payload: 1}, {do: finish, outcome: {status: ok, value: 2}}]}
  expect: {outcome: {status: ok, value: 3}, events: [{kind: began}], results: [], files: {a.txt: here}}
- name: a deadline
  input: {steps: [{do: loop}]}
  deadline: 1s
  expect: {outcome: {status: timeout}}
- name: a model
  input:
    steps:
      - {do: model, request: {messages: [{role: user, content: [{type: text, text: hi}]}]}}
      - {do: finish, outcome: {status: ok, value: 1}}
  model: [{text: hello}]
  expect: {outcome: {status: ok}}
`,
        'yaml',
      ),
    )
    expect(ran.code).toBe(1)
    expect(untimed(ran.out)).toEqual([
      'ok all is well',
      'ok an error',
      'FAILED nothing fits',
      '  value: expected 3, got 2',
      '  events: expected ["began"], got ["other"]',
      '  results: expected [], got [2]',
      '  file a.txt: expected "here", got null',
      'ok a deadline',
      'ok a model',
      '4 passed, 1 failed',
    ])
  })

  it('puts files into a workspace of the case, and looks at them afterwards', async () => {
    const path = cases(
      JSON.stringify([
        {
          name: 'reads',
          input: { op: 'get', path: 'in/a.txt' },
          files: { 'in/a.txt': 'ä' },
          expect: { outcome: { status: 'ok' }, results: [{ text: 'ä' }], files: { 'in/a.txt': 'ä', 'b.txt': null } },
        },
        {
          name: 'finds nothing of another case',
          input: { op: 'get', path: 'in/a.txt' },
          expect: { outcome: { status: 'error', error: { code: 'io_error' } } },
        },
      ]),
    )
    expect(await test('files', path)).toMatchObject({ code: 0, out: expect.arrayContaining(['2 passed, 0 failed']) })
  })

  it.each([
    ['[]', /there is no case/],
    ['{}', /expected array/],
    ['[{"name":"a","expect":{"outcome":{"status":"fine"}}}]', /at \[0\]\.expect\.outcome\.status/],
    ['[{"name":"a","expects":{}}]', /Unrecognized key: "expects"/],
    [
      '[{"name":"a","expect":{"outcome":{"status":"ok"}}},{"name":"a","expect":{"outcome":{"status":"ok"}}}]',
      /a name of its own/,
    ],
    ['[', /^Cannot read the cases/],
  ])('refuses the cases %s', async (text, message) => {
    await expect(test('wordcount', cases(text))).rejects.toThrow(message)
  })

  it('refuses YAML that unfolds into more than it is', async () => {
    const levels = Array.from(
      { length: 12 },
      (_, level) => `x${level + 1}: &x${level + 1} [${`*x${level},`.repeat(9)}]`,
    )
    await expect(test('wordcount', cases(`x0: &x0 [1]\n${levels.join('\n')}`, 'yaml'))).rejects.toThrow(/alias/)
  })
})
