// A tool service that does as little as one can. Prints its port, and ends with its standard input.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => (body += text))
  request.on('end', () => {
    const { arguments: given } = JSON.parse(body) as { arguments: { text: string } }
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ content: [{ type: 'text', text: given.text }] }))
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
process.stdin.resume().on('end', () => process.exit(0))
