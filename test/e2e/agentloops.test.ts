import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll } from 'vitest'
import { fixture, typescriptAgentloop } from '../fixtures/components.ts'
import { agentloopConformance } from '../support/agentloop-conformance.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const component = async (path: string): Promise<object> => {
  const id = await server.admit(await readFile(path), 'agentloops')
  return { implementation: { type: 'brain_component', entrypoint: 'turn', id }, environment: 'box' }
}

agentloopConformance(
  'that is built in',
  () => server,
  async () => undefined,
)
agentloopConformance(
  'in Rust',
  () => server,
  async () => component(fixture('agentloop')),
)
agentloopConformance(
  'in TypeScript',
  () => server,
  async () => component(await typescriptAgentloop()),
)
