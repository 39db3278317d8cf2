import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

const TOKEN = 'application-token'
const models = [{ id: 'small', context_window_tokens: 8000, structured_output: false }]
let folder: string
let server: TestServer
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'brain-models-'))
  const file = join(folder, 'providers.json')
  const mine = { name: 'mine', dialect: 'openai_chat', base_url: 'http://127.0.0.1:9/v1', models }
  await writeFile(file, JSON.stringify({ providers: [mine] }))
  server = await startServer({ BRAIN_API_TOKEN: TOKEN, BRAIN_PROVIDERS_FILE: file })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const get = (path: string, token = TOKEN) => server.get(path, { authorization: `Bearer ${token}` })

describe('GET /v1/models', () => {
  it('lists the providers of the server and of the operator, without where they are', async () => {
    const { status, body, text } = await get('/v1/models')
    expect(status).toBe(200)
    const media = ['image', 'application/pdf']
    expect(body).toEqual({
      snapshot_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      providers: [
        { id: 'vercel-ai-gateway', dialect: 'openai_responses', media_inputs: media, models: [] },
        { id: 'openai', dialect: 'openai_responses', media_inputs: media, models: [] },
        { id: 'anthropic', dialect: 'anthropic_messages', media_inputs: media, models: [] },
        { id: 'mine', dialect: 'openai_chat', media_inputs: ['image'], models },
      ],
    })
    expect(text).not.toContain('127.0.0.1')
  })

  it('answers one provider, with the digest of them all', async () => {
    const all = await get('/v1/models')
    const { body } = await get('/v1/models?provider=mine')
    expect(body.providers.map(({ id }: any) => id)).toEqual(['mine'])
    expect(body.snapshot_digest).toBe(all.body.snapshot_digest)
  })

  it('refuses an unknown provider, an unknown query and a wrong token', async () => {
    for (const path of ['/v1/models?provider=nobody', '/v1/models?provider=', '/v1/models?page=1'])
      expect(await get(path)).toMatchObject({ status: 400, body: { code: 'invalid_request', retryable: false } })
    expect((await get('/v1/models?provider=nobody')).body.message).toContain(
      'vercel-ai-gateway, openai, anthropic, mine',
    )
    expect((await get('/v1/models', 'wrong')).status).toBe(401)
    expect((await server.get('/v1/models')).status).toBe(401)
  })
})
