import { once } from 'node:events'
import { appendFile, glob, truncate } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer, type TestSession } from '../support/server.ts'
import { until } from './lab.ts'
import { descendantsOf, descriptorsOf } from '../support/processes.ts'

const SIZE = 24 * 1024 * 1024
let server: TestServer
let session: TestSession
beforeAll(async () => {
  server = await startServer()
  session = await server.session([])
})
afterAll(() => server[Symbol.asyncDispose]())

async function pathOnDisk(name: string): Promise<string> {
  for await (const path of glob(`data/native-workspaces/*/*/${name}`, { cwd: server.directory }))
    return join(server.directory, path)
  throw new Error(`no ${name}`)
}

/** Asks for a file on a connection of its own, which is not read from yet. */
async function ask(name: string, requests = 1): Promise<Socket> {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) })
  const path = `${session.path}/environments/box/files/${name}`
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`.repeat(requests))
  await once(socket, 'readable')
  return socket
}

const readAll = async (socket: Socket, enough = Number.POSITIVE_INFINITY): Promise<Buffer> => {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of socket as AsyncIterable<Buffer>) {
    parts.push(part)
    size += part.length
    if (size >= enough) break
  }
  return Buffer.concat(parts)
}

describe('GET of a file', () => {
  it('sends what `content-length` said and nothing after it, when the file grows meanwhile', async () => {
    await session.put('grows', Buffer.alloc(SIZE, 'a'))
    const file = await pathOnDisk('grows')
    const socket = await ask('grows', 2)
    await appendFile(file, 'HTTP/1.1 200 forged\r\n')
    const all = await readAll(socket, 2 * SIZE)
    const start = all.indexOf('\r\n\r\n') + 4
    expect(all.subarray(0, start).toString()).toContain(`content-length: ${SIZE}`)
    expect(all.subarray(start + SIZE - 1, start + SIZE + 15).toString()).toBe('aHTTP/1.1 200 OK')
  })

  it('breaks the connection off, when the file becomes shorter meanwhile', async () => {
    await session.put('shrinks', Buffer.alloc(SIZE, 'a'))
    const socket = await ask('shrinks')
    await truncate(await pathOnDisk('shrinks'), 10)
    const all = await readAll(socket).catch(() => Buffer.alloc(0))
    expect(all.length).toBeLessThan(SIZE)
  })

  it('leaves no file open for clients that went away', async () => {
    await session.put('left', Buffer.alloc(SIZE))
    const { hostname, port } = new URL(server.url)
    const path = `${session.path}/environments/box/files/left`
    for (let i = 0; i < 30; i++) {
      const socket = connect({ host: hostname, port: Number(port) })
      socket.on('error', () => {})
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`)
      setTimeout(() => socket.destroy(), i % 10)
      await once(socket, 'close')
    }
    expect((await session.file('left')).text.length).toBe(SIZE)
    const open = () =>
      descendantsOf(server.pid).flatMap(({ pid }) =>
        [...descriptorsOf(pid).values()].filter((at) => at.endsWith('/left')),
      )
    await until(() => open().length === 0, 'the file is closed')
  })
})
