import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../../src/config/config.ts'
import { proxyFor } from '../../../src/kernel/net/proxy-rules.ts'
import { LIMITS } from '../../../src/contract/limits.ts'

const problemsOf = (env: Record<string, string>): readonly string[] => {
  try {
    loadConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('loadConfig()', () => {
  it('starts without any variable, on loopback', () => {
    const config = loadConfig({})
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 8080 })
    expect(config.dataDirectory).toBe('brain-data')
    expect(config.limits.toolSecs).toBe(120)
  })

  it('lists every problem at once', () => {
    const problems = problemsOf({
      BRAIN_LISTEN: 'nowhere',
      BRAIN_MAX_TOOL_SECS: '-1',
      BRAIN_API_TOKEN: '',
      BRAIN_ENV_UNSAFE: 'yes',
    })
    for (const name of ['BRAIN_LISTEN', 'BRAIN_MAX_TOOL_SECS', 'BRAIN_API_TOKEN', 'BRAIN_ENV_UNSAFE'])
      expect(problems.some((problem) => problem.startsWith(name))).toBe(true)
    expect(problems).toHaveLength(4)
  })

  it.each(['0.0.0.0:8080', '10.1.2.3:80', '[::]:8080'])(
    'refuses %s without a token, and takes it with one',
    (listen) => {
      expect(problemsOf({ BRAIN_LISTEN: listen })[0]).toMatch(/BRAIN_API_TOKEN must be set/)
      expect(loadConfig({ BRAIN_LISTEN: listen, BRAIN_API_TOKEN: 't' }).tenants).toMatchObject([
        { id: 'local', tokens: ['t'] },
      ])
    },
  )

  it.each(['127.0.0.1:0', '127.8.9.1:1', 'localhost:8080', '[::1]:8080'])(
    'takes loopback %s without a token',
    (listen) => {
      expect(problemsOf({ BRAIN_LISTEN: listen })).toEqual([])
    },
  )

  it('refuses a database URL and says that PostgreSQL comes later', () => {
    expect(problemsOf({ BRAIN_DATABASE_URL: 'postgres://x' })[0]).toMatch(/PostgreSQL comes later/)
  })

  it('reads every limit from its variable, and refuses what is no whole number or too little', () => {
    for (const [name, { variable, least }] of Object.entries(LIMITS)) {
      const limits: Readonly<Record<string, number>> = loadConfig({ [variable]: String(least + 7) }).limits
      expect(limits[name]).toBe(least + 7)
      for (const bad of ['', 'x', '1.5', '-1', '1e3', ' 1', String(least - 1)])
        expect(problemsOf({ [variable]: bad })[0]).toContain(variable)
    }
  })

  it('reads proxies in both spellings, of which the small one wins, and repeats none that is wrong', () => {
    const originOf = (env: Record<string, string>, url: string): string | undefined =>
      proxyFor(loadConfig(env).proxies, new URL(url))?.url.origin
    expect(originOf({ HTTPS_PROXY: 'http://a.test' }, 'https://x.test')).toBe('http://a.test')
    expect(originOf({ HTTP_PROXY: 'http://a.test', http_proxy: 'http://b.test' }, 'http://x.test')).toBe(
      'http://b.test',
    )
    expect(originOf({ HTTP_PROXY: 'http://a.test', no_proxy: 'x.test' }, 'http://x.test')).toBeUndefined()
    const [problem, ...more] = problemsOf({ HTTPS_PROXY: 'socks5://user:secret@x.test' })
    expect([problem, more]).toEqual([expect.stringContaining('Cannot use HTTPS_PROXY: only proxies'), []])
    expect(problem).not.toContain('secret')
  })

  it('finds the values of allowed secrets only', () => {
    const { secrets } = loadConfig({ BRAIN_ENV_SECRET_ALLOW: 'A_KEY, B_KEY', A_KEY: 'a', OTHER: 'o' })
    expect([...secrets]).toEqual([['A_KEY', 'a']])
  })
})
