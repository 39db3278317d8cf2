// BRAIN_TOOLS=echo,ask_operator node examples/session.mjs: a session with distributed tools, from nothing to its result
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, ROOT, startProcess, stopProcesses } from './session-processes.mjs'
import { printable } from './tool-service.mjs'

const NOTICE = { text: 'We are closed on Monday' }

/** What the model is scripted to ask of each tool. */
const ARGUMENTS = {
  echo: { text: 'hello' },
  ask_operator: { question: 'May I publish this?', action: { tool: 'publish_notice', arguments: NOTICE } },
  publish_notice: NOTICE,
  count_primes: { below: 100_000 },
  session_activity: {},
  run_javascript: { code: '[1, 2, 3].map((number) => number * number)' },
  write_file: { path: 'notes/today.txt', text: 'Buy milk' },
  read_file: { path: 'notes/today.txt' },
  list_files: {},
}
const SERVICES = {
  tools: ['TOOLS_LISTEN', 8081],
  sandbox: ['SANDBOX_LISTEN', 8082],
  storage: ['STORAGE_LISTEN', 8083],
}

const names = (process.env.BRAIN_TOOLS ?? 'echo,ask_operator').split(',').map((name) => name.trim())
const directory = await mkdtemp(join(tmpdir(), 'brain-session-'))
try {
  const unknown = names.find((name) => !Object.hasOwn(ARGUMENTS, name))
  if (unknown !== undefined)
    throw new Error(`BRAIN_TOOLS names "${unknown}", which is none of ${Object.keys(ARGUMENTS).join(', ')}`)
  await runSession(await brainServer())
} catch (error) {
  console.error(`Cannot run the session: ${error.message}`)
  process.exitCode = 1
} finally {
  await stopProcesses()
  await rm(directory, { recursive: true, force: true })
}

/** The server at BRAIN_URL, or one with services of its own that is started now. */
async function brainServer() {
  const { BRAIN_URL: url, BRAIN_API_KEY: token } = process.env
  if (url === undefined) return startAll()
  const ready = await fetch(`${url}/health/ready`).catch(() => undefined)
  if (ready?.ok !== true) throw new Error(`no Brain server is ready at ${url}`)
  return { url, token }
}

async function startAll() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const keys = { BRAIN_API_KEY: randomBytes(24).toString('hex'), BRAIN_TOOLS_KEY: randomBytes(24).toString('hex') }
  const tools = []
  for (const [service, [variable, usual]] of Object.entries(SERVICES)) {
    const file = join(ROOT, 'examples', service, 'bindings.json')
    const wanted = JSON.parse(await readFile(file, 'utf8')).tools.filter(({ name }) => names.includes(name))
    if (wanted.length === 0) continue
    const env = {
      ...keys,
      BRAIN_URL: url,
      [variable]: '127.0.0.1:0',
      APPROVALS_PORT: '0',
      STORAGE_DIR: join(directory, 'files'),
    }
    if (service === 'sandbox') env.SANDBOX_COMPONENT = await sandboxComponent()
    const program = join(ROOT, 'examples', service, 'server.mjs')
    const { url: at } = await startProcess([process.execPath, program], { env, shows: true })
    tools.push(...wanted.map((tool) => ({ ...tool, url: tool.url.replace(`http://127.0.0.1:${usual}`, at) })))
  }
  const config = join(directory, 'brain.json')
  await writeFile(config, JSON.stringify({ tenants: [{ id: 'local', token_env: 'BRAIN_API_KEY' }], tools }, null, 2))
  const node = join(ROOT, 'node_modules/.bin/node')
  const program = ['--disable-warning=ExperimentalWarning', join(ROOT, 'src/cli/brain.ts'), 'serve', '--config', config]
  const data = { BRAIN_DATA_DIR: join(directory, 'data'), BRAIN_SCRIPTED_MODEL: '1', BRAIN_LISTEN: `127.0.0.1:${port}` }
  await startProcess([node, ...program], { env: { ...keys, ...data, BRAIN_LOG_LEVEL: 'error' }, shows: false })
  return { url, token: keys.BRAIN_API_KEY }
}

async function sandboxComponent() {
  if (process.env.SANDBOX_COMPONENT !== undefined) return process.env.SANDBOX_COMPONENT
  const file = join(directory, 'evaluate.wasm')
  await startProcess([process.execPath, join(ROOT, 'examples/sandbox/build.mjs'), file], { env: {}, shows: false })
  return file
}

async function runSession({ url, token }) {
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const ask = async (method, path, body) => {
    const headers = { ...authorization, 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    const options = body === undefined ? { headers: authorization } : { method, headers, body: JSON.stringify(body) }
    const response = await fetch(url + path, options)
    if (response.ok) return response.json()
    throw new Error(`${method} ${path} was answered ${response.status}: ${await response.text()}`)
  }
  const { tools } = await ask('GET', '/catalog')
  console.log(`the catalog has ${tools.map(({ name }) => name).join(', ')}`)
  const script = [
    ...names.map((name) => ({ tool_calls: [{ name, input: ARGUMENTS[name] }] })),
    { text: 'That is all.' },
  ]
  const model = { provider: 'scripted', name: 'script', api_key: 'none', script }
  const { session_id } = await ask('POST', '/v1/sessions', { model, config: { tools: names } })
  console.log(`session ${session_id}`)
  const shown = showTools(`${url}/v1/sessions/${session_id}/tool-events`, authorization)
  await ask('POST', `/v1/sessions/${session_id}/messages`, { input: { message: 'Use your tools' } })
  const { messages } = await ask('GET', `/v1/sessions/${session_id}/transcript`)
  // The end of the session ends its stream.
  await ask('POST', `/v1/sessions/${session_id}/end`, {})
  await shown
  console.log(
    `the model says: ${messages
      .at(-1)
      .content.map((part) => part.text ?? '')
      .join('')}`,
  )
}

async function showTools(url, authorization) {
  const response = await fetch(url, { headers: { ...authorization, Accept: 'text/event-stream' } })
  let pending = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (pending + chunk).split('\n\n')
    pending = frames.pop()
    for (const frame of frames) {
      const event = /^event: (.*)$/m.exec(frame)?.[1]
      if (event !== undefined) console.log(event, lineOf(event, JSON.parse(/^data: (.*)$/m.exec(frame)[1])))
    }
  }
}

function lineOf(event, frame) {
  const data = frame.data ?? frame
  if (event === 'tool.call') return printable(`${data.name} ${JSON.stringify(data.arguments)}`)
  if (event === 'tool.progress') return printable(JSON.stringify(data))
  const words = (data.content ?? []).map((part) => part.text).join(' ') || JSON.stringify(data.structured_content)
  return printable(`${data.is_error ? 'error: ' : ''}${words}`)
}
