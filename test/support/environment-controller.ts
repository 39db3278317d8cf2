import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Callback, EnvironmentCommand, EnvironmentReceipt } from '../../src/contract/environment-protocol.ts'

type Operation = EnvironmentCommand['operation']

/** What a controller answers: a receipt, or bytes of its own; undefined = nothing, and the connection stays open. */
export type Answer = EnvironmentReceipt | { readonly status: number; readonly body: string } | undefined

/** A controller of environments as the wire sees it, conducted by a test. */
export class EnvironmentController implements AsyncDisposable {
  readonly operations: Operation[] = []
  readonly authorizations: (string | undefined)[] = []
  /** Connections that were closed before they were answered. */
  cut = 0
  answer: (operation: Operation) => Answer | Promise<Answer> = (operation) =>
    operation.request.type === 'execute' ? { type: 'result', output: null } : { type: 'accepted' }
  readonly #server: Server
  readonly #waiting: (() => void)[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(): Promise<EnvironmentController> {
    const server = createServer()
    const controller = new EnvironmentController(server)
    server.on('request', (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        response.on('close', () => {
          if (!response.writableEnded) controller.cut++
          controller.#wake()
        })
        const { operation } = JSON.parse(Buffer.concat(chunks).toString()) as EnvironmentCommand
        controller.authorizations.push(request.headers.authorization)
        controller.operations.push(operation)
        controller.#wake()
        void (async () => {
          const answer = await controller.answer(operation)
          if (answer === undefined) return
          const { status, body } =
            'status' in answer
              ? answer
              : {
                  status: 200,
                  body: JSON.stringify({ contract: 'environment/v1', sequence: operation.sequence, receipt: answer }),
                }
          response.writeHead(status, { 'content-type': 'application/json' }).end(body)
        })()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return controller
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/base/`
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves once something holds, looked at whenever something has come or gone. */
  async until<Found>(find: () => Found | undefined | false): Promise<Found> {
    for (;;) {
      const found = find()
      if (found !== undefined && found !== false) return found
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** The first operation of a type. */
  operation(type: Operation['request']['type'], nth = 0): Promise<Operation> {
    return this.until(() => this.operations.filter(({ request }) => request.type === type)[nth])
  }

  get types(): string[] {
    return this.operations.map(({ request }) => request.type)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export type Called = { readonly status: number; readonly body: any }

/** Uses a callback as its holder does. */
export async function useCallback({ url, token }: Callback, body: unknown): Promise<Called> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}
