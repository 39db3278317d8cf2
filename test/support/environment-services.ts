import { createServer, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** One request of an environment to Brain. */
export type ServiceRequest = { readonly path: string; readonly token: string | undefined; readonly body: any }

/** What to answer: a status with a body; `undefined` cuts the connection. */
export type ServiceAnswer = { readonly status?: number; readonly body: unknown } | undefined

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** A listener where Brain's callbacks would be: it writes down what it is asked, and answers as it is told. */
export class EnvironmentServicesServer {
  readonly requests: ServiceRequest[] = []
  answer: (request: ServiceRequest) => ServiceAnswer | Promise<ServiceAnswer> = () => ({ body: this.requests.length })
  readonly #server = createServer((request, response) => {
    void (async () => {
      const body: unknown = JSON.parse(await bodyOf(request))
      const asked = { path: request.url ?? '', token: request.headers.authorization?.replace(/^Bearer /, ''), body }
      this.requests.push(asked)
      const answer = await this.answer(asked)
      if (answer === undefined) return request.socket.destroy()
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
      return undefined
    })()
  })

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** A callback of contract 5.1. */
  callback(path: string, token: string, ...methods: string[]): object {
    return { url: `${this.url}/${path}`, token, methods }
  }

  /** The bodies of what came to a path, in order. */
  at(path: string): any[] {
    return this.requests.filter((request) => request.path === `/${path}`).map(({ body }) => body)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
