import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { developTool } from '../../src/cli/dev.ts'

const directory = mkdtempSync(join(tmpdir(), 'brain-dev-test-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const source = join(directory, 'project/tool.ts')
mkdirSync(join(directory, 'project'))
const template = readFileSync(
  join(import.meta.dirname, '../../src/authoring/templates/typescript/tool.ts'),
  'utf8',
).replaceAll('{{name}}', 'words')
const save = (most: string): void => writeFileSync(source, template.replace('default(3)', `default(${most})`))

it('brain dev runs a tool with the same input whenever it is saved, and says what is wrong with it', async () => {
  const said: string[] = []
  let look = (): void => {}
  const outputs = {
    out: (line: string) => (said.push(line), look()),
    note: (line: string) => (said.push(line), look()),
  }
  /** Resolves when the round that began with the last save is over. */
  const round = async (): Promise<string> => {
    await new Promise<void>((done) => {
      look = () => said.some((line) => line.startsWith('watching ')) && done()
      look()
    })
    return said.splice(0).join('\n')
  }
  const stop = new AbortController()
  const env = { PATH: process.env['PATH'], XDG_CACHE_HOME: join(directory, 'cache') }
  save('3')
  const running = developTool(env, source, { input: '{"text":"a b c a b a"}' }, { signal: stop.signal, outputs })
  expect(await round()).toMatch(
    /^built words in \d+\.\d s\ncounting \{"characters":11\}\nresult \[\{"word":"a","count":3\},\{"word":"b","count":2\},\{"word":"c","count":1\}\]\nok /m,
  )
  save('1')
  expect(await round()).toMatch(/^result \[\{"word":"a","count":3\}\]$/m)
  save('1')
  save('2')
  expect(await round()).toMatch(/^result \[\{"word":"a","count":3\},\{"word":"b","count":2\}\]$/m)
  save('1(')
  expect(await round()).toMatch(/^Cannot build ".*tool\.ts": tool\.ts:\d+:\d+: /m)
  save('1')
  expect(await round()).toMatch(/^ok /m)
  stop.abort()
  await running
})

it('brain dev refuses what is no source, and flags that cannot be used', async () => {
  const { signal } = new AbortController()
  await expect(developTool({}, join(directory, 'nowhere.ts'), {}, { signal })).rejects.toThrow(/there is no such file/)
  await expect(developTool({}, source, { deadline: 'soon' }, { signal })).rejects.toThrow(/^Cannot use --deadline/)
})
