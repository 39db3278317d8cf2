import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { responsesAnswer, stream, type Asked } from '../../support/model-server.ts'
import { openLab } from './provider-lab.ts'

const pem = (name: string): string =>
  readFileSync(new URL(`../../fixtures/tls/localhost.${name}`, import.meta.url), 'utf8')
const trusted = getCACertificates()
let server: Server
let requests = 0
beforeAll(async () => {
  server = createServer({ key: pem('key'), cert: pem('crt') }, (_request, response) => {
    requests++
    void stream(responsesAnswer('over TLS'))(response, {} as Asked)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  setDefaultCACertificates(trusted)
  server.close()
  server.closeAllConnections()
})

const at = (host: string): string => `https://${host}:${(server.address() as AddressInfo).port}/v1`

it('a provider is called over TLS only where its certificate is trusted and has its name', async () => {
  const untrusted = await openLab(at('localhost'), { dialect: 'openai_responses' }).fail()
  expect(untrusted).toMatchObject({
    message: expect.stringMatching(/no connection \(\w*CERT\w*\); nothing was sent/),
    ambiguous: false,
  })
  expect(requests).toBe(0)
  setDefaultCACertificates([pem('crt')])
  const answer = await openLab(at('localhost'), { dialect: 'openai_responses' }).ask()
  expect(answer.message.content).toEqual([{ type: 'text', text: 'over TLS' }])
  expect(requests).toBe(1)
  const misnamed = await openLab(at('127.0.0.1'), { dialect: 'openai_responses' }).fail()
  expect(misnamed.message).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(requests).toBe(1)
})
