import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')

it('the AI SDK is not loaded before a provider of chat completions is called', async () => {
  const script = `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ resolve: (name, context, next) => (seen.push(name), next(name, context)) })
    const { remoteProvider } = await import('./src/model/remote/remote-provider.ts')
    remoteProvider({ name: 'x', dialect: 'openai_chat', baseUrl: 'http://127.0.0.1:9', models: [] }, {})
    console.log(JSON.stringify([seen.length > 10, seen.filter((name) => name.includes('ai-sdk'))]))`
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: root })
  expect(JSON.parse((await run).stdout)).toEqual([true, []])
})
