import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../../src/config/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'brain-providers-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileOf(content: unknown): string {
  const path = join(folder, 'providers.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

function problemOf(env: Record<string, string>): string {
  try {
    loadConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.join('\n')
    throw error
  }
  throw new Error('the configuration was taken')
}

const mine = { name: 'mine', dialect: 'openai_responses', base_url: 'http://models.internal:8000/api/v1/' }

describe('loadConfig()', () => {
  it('has the three providers of every server, where the variables say', () => {
    const basesOf = (env: Record<string, string>): string[] => loadConfig(env).providers.map(({ baseUrl }) => baseUrl)
    expect(loadConfig({}).providers.map(({ name, dialect }) => [name, dialect])).toEqual([
      ['vercel-ai-gateway', 'openai_responses'],
      ['openai', 'openai_responses'],
      ['anthropic', 'anthropic_messages'],
    ])
    expect(basesOf({})).toEqual([
      'https://ai-gateway.vercel.sh/v1',
      'https://api.openai.com/v1',
      'https://api.anthropic.com/v1',
    ])
    const bases = {
      BRAIN_MODEL_BASE_URL: 'http://127.0.0.1:1/gateway/v1',
      BRAIN_OPENAI_BASE_URL: 'http://127.0.0.1:2',
      BRAIN_ANTHROPIC_BASE_URL: 'http://127.0.0.1:3/',
    }
    expect(basesOf(bases)).toEqual(['http://127.0.0.1:1/gateway/v1', 'http://127.0.0.1:2/v1', 'http://127.0.0.1:3/v1'])
  })

  it('adds the providers of BRAIN_PROVIDERS_FILE', () => {
    const chat = {
      name: 'chat',
      dialect: 'openai_chat',
      base_url: 'https://x.example',
      supports_response_format: false,
    }
    const messages = { name: 'm', dialect: 'anthropic_messages', base_url: 'https://y.example/v1' }
    const models = [{ id: 'small', context_window_tokens: 8000, cost: { input: 0.5, output: 2 } }]
    const path = fileOf({ providers: [{ ...mine, namespaced_model: true, models }, chat, messages] })
    expect(loadConfig({ BRAIN_PROVIDERS_FILE: path }).providers.slice(3)).toEqual([
      {
        name: 'mine',
        dialect: 'openai_responses',
        baseUrl: 'http://models.internal:8000/api/v1',
        namespacedModel: true,
        supportsResponseFormat: true,
        models,
      },
      expect.objectContaining({ name: 'chat', baseUrl: 'https://x.example', supportsResponseFormat: false }),
      expect.objectContaining({ name: 'm', supportsResponseFormat: false }),
    ])
  })

  it.each([
    ['no JSON', '{"providers":', 'not usable JSON'],
    ['a name of the server', { providers: [{ ...mine, name: 'openai' }] }, 'set BRAIN_OPENAI_BASE_URL instead'],
    ['two of one name', { providers: [mine, mine] }, 'same name'],
    ['another dialect', { providers: [{ ...mine, dialect: 'smoke' }] }, 'must be openai_responses, anthropic_messages'],
    ['a key in the URL', { providers: [{ ...mine, base_url: 'https://u:p@x.example' }] }, 'without user'],
    ['a query', { providers: [{ ...mine, base_url: 'https://x.example/?a=b' }] }, 'without user, query or fragment'],
    ['a file URL', { providers: [{ ...mine, base_url: 'file:///etc' }] }, 'http or https'],
    ['a member that is not known', { providers: [{ ...mine, api_key: 'k' }] }, 'api_key'],
    [
      'a format that Messages has not',
      { providers: [{ ...mine, dialect: 'anthropic_messages', supports_response_format: true }] },
      'no response_format',
    ],
  ])('refuses a file with %s, naming the variable', (_, content, reason) => {
    const problem = problemOf({ BRAIN_PROVIDERS_FILE: fileOf(content) })
    expect(problem).toContain('BRAIN_PROVIDERS_FILE: ')
    expect(problem).toContain(reason)
  })

  it('lists a file that is not there with every other problem', () => {
    const problem = problemOf({
      BRAIN_PROVIDERS_FILE: join(folder, 'nothing.json'),
      BRAIN_MODEL_BASE_URL: 'gopher://x',
      BRAIN_LISTEN: 'nowhere',
    })
    for (const name of ['BRAIN_PROVIDERS_FILE', 'ENOENT', 'BRAIN_MODEL_BASE_URL', 'BRAIN_LISTEN'])
      expect(problem).toContain(name)
  })
})
