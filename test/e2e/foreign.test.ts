import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  foreignPythonComponent,
  fixture as fixturePath,
  javascriptComponent,
  pythonComponent,
  STARLINGMONKEY,
  starlingMonkeyComponent,
} from '../fixtures/components.ts'
import { findPython } from '../../src/authoring/build/python/find-python.ts'
import { PACKAGE_IN_CHECKOUT } from '../../src/authoring/build/python/python-package.ts'
import { startServer, type TestServer, type TestSession } from '../support/server.ts'

const run = promisify(execFile)

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Uploads a file the way a person at a terminal does. @returns the component's id */
async function curlUpload(file: string): Promise<string> {
  const { stdout } = await run('curl', [
    '--silent',
    '--show-error',
    '--fail-with-body',
    '--data-binary',
    `@${file}`,
    '--header',
    'content-type: application/wasm',
    '--header',
    `idempotency-key: ${Math.random()}`,
    `${server.url}/v1/tools`,
  ])
  return (JSON.parse(stdout) as { id: string }).id
}

const foreign = (id: string): Promise<TestSession> =>
  server.session([{ name: 'foreign', id, description: 'a tool of other people', input_schema: { type: 'object' } }])

const FILES = { text: 'written by a foreign component\n', bytes: 31, names: ['foreign.txt'] }

async function expectRecords(session: TestSession): Promise<void> {
  const kinds = (await session.records()).map((record) => record.event_type)
  expect(kinds.slice(4)).toEqual(['tool_call_started', 'foreign_started', 'tool_result_emitted', 'tool_call_ended'])
}

describe('a component that was built with nothing of ours, uploaded with curl', () => {
  it('runs when it is Rust with std::fs', async () => {
    const session = await foreign(await curlUpload(fixturePath('foreign-files')))
    expect(await session.value({})).toEqual(FILES)
    await expectRecords(session)
  })

  it('runs when it is JavaScript in QuickJS', async () => {
    const session = await foreign(await curlUpload(await javascriptComponent('wordcount')))
    expect(await session.value({ text: 'Ein Wörtchen, ein Wort' })).toEqual({ words: 4, unique: 3 })
    await expectRecords(session)
  })

  const compiler = STARLINGMONKEY
  if (compiler !== undefined)
    it('runs when it is JavaScript in StarlingMonkey', { timeout: 300_000 }, async () => {
      const session = await foreign(await curlUpload(await starlingMonkeyComponent(compiler)))
      expect(await session.value({ text: 'Ein Wörtchen, ein Wort' })).toEqual({ words: 4, unique: 3 })
      await expectRecords(session)
    })

  it('ends with its own code when it is JavaScript that throws a tool-error', async () => {
    const session = await foreign(await curlUpload(await javascriptComponent('failing')))
    const { outcome } = await session.call({ text: 'x' }, { wait: 'finished' })
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'no_luck' } })
  })

  it('runs when it is Python of plain componentize-py', async () => {
    const python = await foreignPythonComponent()
    if (!python.built) throw new Error(`this test needs Python: ${python.reason}`)
    const session = await foreign(await curlUpload(python.component))
    expect(await session.value({})).toEqual(FILES)
    await expectRecords(session)
  })
})

describe('a Python tool of the examples', () => {
  it('reads a CSV from the workspace and writes its report there', async () => {
    const python = await pythonComponent('csv_report')
    if (!python.built) throw new Error(`this test needs Python: ${python.reason}`)
    const session = await server.sessionWith(await readFile(python.component), { name: 'csv_report' })
    await session.put('sales.csv', 'city,amount\nOslo,10\nBergen,5\nOslo,2.5\n')
    const value = await session.value({ path: 'sales.csv', group_by: 'city', sum: 'amount' })
    expect(value).toMatchObject({ rows: 3, total: 17.5, report: expect.any(String) })
    const report = await session.file((value.report as string).replace('/workspace/', ''))
    expect(report.text).toContain('Oslo')
  })

  it('has json, re, time, random and pathlib, and sockets that are linked and denied', async () => {
    const python = await pythonComponent('pyfiles')
    if (!python.built) throw new Error(`this test needs Python: ${python.reason}`)
    const session = await server.sessionWith(await readFile(python.component), { name: 'pyfiles' })
    const { body } = await server.get('/v1/tools')
    expect(JSON.stringify(body)).toContain('wasi:sockets')
    const library = await session.value({ op: 'library' })
    expect(Object.values<string>(library).filter((answer) => /Error/.test(answer))).toEqual([])
    const sockets = await session.value({ op: 'sockets' })
    expect(Object.values<string>(sockets).every((answer) => /Error/.test(answer))).toBe(true)
  })
})

/** Sessions whose tools run in the sandbox, as a program in Python sees them. */
const PROGRAM = `
import sys
from brain.patterns import ReActAgent, ToolError, tool
from brain.providers import Answer, BrainProvider, ProviderError, ToolCall

url, component = sys.argv[1:]
script = [{"tool_calls": [{"name": "wordcount", "input": {"text": "a b a"}}]}, {"text": "three words"}]
model = {"provider": "scripted", "name": "script", "api_key": "none", "script": script}
provider = BrainProvider.open(url, [component], model=model)

tools = provider.tools()
print(list(tools), tools["wordcount"].parameters["required"])
print(ReActAgent(tools, provider).run("How many words?").answer)
print(tools["wordcount"](text="to be or not")["words"])
try:
    provider.call("wordcount", {"txt": 1})
except ToolError as error:
    print(error.code)

class Asks:
    def __init__(self):
        self.answers = [Answer("", (ToolCall("1", "wordcount", {"text": "x y", "top": 0}),)), Answer("done")]
    def complete(self, messages, tools):
        return self.answers.pop(0)

print(ReActAgent(tools, Asks()).run("task").steps[0].results[0].content)

@tool("Not compiled")
def local(): ...

for failing in (
    lambda: ReActAgent({"local": local}, provider).run("task"),
    lambda: BrainProvider(url, "ses_00000000000000000000000000000000").call("wordcount", {}),
    lambda: BrainProvider.open(url, [component], model={"provider": "nobody"}),
):
    try:
        failing()
    except ProviderError as error:
        print(error.status, str(error).replace(url, "URL")[:60])

script = [{"error": {"code": "overloaded", "message": "no model today"}}]
failing = BrainProvider.open(url, [component], model={**model, "script": script})
try:
    ReActAgent({}, failing).run("task")
except ProviderError as error:
    print(str(error).replace(failing.session_id, "SESSION"))
`

describe('a program in Python with brain-patterns', () => {
  it('has an agent whose tools run in a session', async () => {
    const { command } = await findPython(import.meta.filename, process.env)
    const { stdout } = await run(command, ['-c', PROGRAM, server.url, fixturePath('wordcount')], {
      env: { ...process.env, PYTHONPATH: PACKAGE_IN_CHECKOUT, PYTHONDONTWRITEBYTECODE: '1' },
    })
    expect(stdout.trim().split('\n')).toEqual([
      "['wordcount'] ['text']",
      'three words',
      '4',
      'invalid_input',
      '{"words":2,"unique":2,"top":[]}',
      expect.stringMatching(/^None Cannot use "local" in the session ses_/),
      expect.stringMatching(/^404 Cannot ask "URL\/v1\/sessions\/ses_0/),
      expect.stringMatching(/^4\d\d Cannot ask "URL\/v1\/sessions"/),
      expect.stringMatching(/^Cannot answer in the session SESSION: .*no model today/),
    ])
  })
})

describe('the summarize example', () => {
  it('asks the session model and gives back what it said', async () => {
    const session = await server.sessionWith('summarize', { name: 'summarize', script: [{ text: 'short and good' }] })
    await session.put('long.txt', 'a long story '.repeat(50))
    expect(await session.value({ path: 'long.txt' })).toMatchObject({ summary: 'short and good' })
    const kinds = (await session.records()).map((record) => record.event_type)
    expect(kinds).toContain('model_call_ended')
  })
})
