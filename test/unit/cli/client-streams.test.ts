import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { expect, it } from 'vitest'
import { openClientStreams } from '../../../src/cli/mcp/client-streams.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { openMcpServer } from '../../../src/mcp/open-mcp-server.ts'

/** A server whose tools keep what they are called with, and a client that writes text. */
function open() {
  const [input, output] = [new PassThrough(), new PassThrough().setEncoding('utf8')]
  const { transport, sentArguments } = openClientStreams(input, output)
  const given: JsonObject[] = []
  const errors: Error[] = []
  const call = async ({ arguments: one }: { readonly arguments: JsonObject }) => {
    given.push(one)
    return { result: { content: [] } }
  }
  const server = serveStdio(
    () =>
      openMcpServer(
        { list: async () => [], call },
        {
          during: (_context, work) => work(new AbortController().signal),
          endsWithConnection: true,
          sentArguments,
          onDefect: (error) => expect.unreachable(String(error)),
        },
      ),
    { transport, maxSubscriptions: 0, onerror: (error) => errors.push(error) },
  )
  const params = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
  input.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}\n`)
  let text = ''
  output.on('data', (chunk: string) => (text += chunk))
  /** The answers, once there are so many, by their ids. */
  const answers = async (count: number): Promise<Map<unknown, any>> => {
    while (text.split('\n').length <= count) await once(output, 'data')
    const lines = text.split('\n').slice(0, -1)
    return new Map(lines.map((line) => JSON.parse(line) as { id: unknown }).map((answer) => [answer.id, answer]))
  }
  const callWith = (id: unknown, text: string): string =>
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":{"name":"t","arguments":${text}}}\n`
  return { input, given, errors, answers, callWith, transport, sentArguments, server }
}

it('what a client writes arrives as it was written, and is forgotten with its answer', async () => {
  const { input, given, answers, callWith, sentArguments, server } = open()
  const written = ['{"__proto__":{"a":1},"constructor":null}', '{"deep":[{"__proto__":7}]}', '{}']
  const lines = Buffer.from(written.map((text, id) => callWith(id + 1, text)).join(''))
  for (const [at] of lines.entries()) input.write(lines.subarray(at, at + 1))
  await answers(4)
  expect(given.map((one) => JSON.stringify(one)).toSorted()).toEqual(written.toSorted())
  // Also where the SDK refuses a call before any tool has it.
  input.write(callWith('odd', '{"n":1}').replace('"name":"t"', '"name":7'))
  expect((await answers(5)).get('odd')).toMatchObject({ error: { code: expect.any(Number) } })
  expect([1, 2, 3, 'odd'].map(sentArguments)).toEqual(Array.from({ length: 4 }))
  await server.close()
})

it('a message that cannot be carried exactly is answered with the reason; what is no JSON is passed over', async () => {
  const { input, given, answers, callWith, server } = open()
  input.write('no JSON\n')
  input.write(callWith(1, '{"n":9007199254740993}'))
  input.write(callWith('two', `{"n":${'['.repeat(64)}${']'.repeat(64)}}`))
  input.write(callWith(3, '{"n":9007199254740992}'))
  const all = await answers(4)
  const refused = (reason: string): object => ({
    error: { code: -32602, message: expect.stringContaining(reason), data: { code: 'invalid_request' } },
  })
  expect(all.get(1)).toMatchObject(refused('9007199254740993 cannot be carried exactly'))
  expect(all.get('two')).toMatchObject(refused('nested deeper than 64 levels'))
  expect(all.get(3)).toMatchObject({ result: {} })
  expect(given).toEqual([{ n: 9_007_199_254_740_992 }])
  await server.close()
})

it('a message of more than 10 MiB ends the connection', async () => {
  const { input, errors, transport } = open()
  const over = transport.onclose
  const closed = new Promise<void>((resolve) => {
    transport.onclose = () => {
      over?.()
      resolve()
    }
  })
  input.write('x'.repeat(10 * 1024 * 1024 + 1))
  await closed
  expect(errors.map(({ message }) => message)).toEqual(['Cannot read message 2: it is longer than 10485760 bytes'])
})
