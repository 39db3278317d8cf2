import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Target } from './hostile-program.ts'

const VICTIMS = ['unlink', 'rename', 'chmod', 'truncate', 'link', 'x.mjs', 'x.json']

async function listening(server: net.Server): Promise<AsyncDisposable> {
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

/** Something to attack: files that everybody may change, and sockets on which somebody listens. */
export async function openAttacked(): Promise<Pick<Target, 'dir' | 'port'> & AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'brain-attack-'))
  stack.defer(() => rm(dir, { recursive: true, force: true }))
  await chmod(dir, 0o777)
  for (const name of VICTIMS) {
    await writeFile(join(dir, name), name.endsWith('json') ? '{}' : '')
    await chmod(join(dir, name), 0o666)
  }
  const web = http.createServer((_request, response) => response.end())
  stack.use(await listening(web.listen(0, '127.0.0.1')))
  stack.defer(() => web.closeAllConnections())
  const address = web.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  stack.use(await listening(net.createServer((socket) => socket.destroy()).listen(`\0brain-${port}`)))
  const socket = join(dir, 'sock')
  stack.use(await listening(net.createServer((peer) => peer.destroy()).listen(socket)))
  await chmod(socket, 0o777)
  const rest = stack.move()
  return { dir, port, [Symbol.asyncDispose]: () => rest.disposeAsync() }
}
