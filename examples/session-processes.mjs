import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const children = []

/**
 * Starts a program and waits until it says where it listens, or ends well.
 *
 * @param {string[]} command @param {{ env: object, shows: boolean }} options `shows` lets it talk to the terminal, both ways
 * @returns {Promise<{ url: string | undefined }>} @throws {Error} with what it printed, when it fails before
 */
export async function startProcess([program, ...parameters], { env, shows }) {
  const { PATH, HOME, TMPDIR } = process.env
  const given = { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env }
  const child = spawn(program, parameters, {
    cwd: ROOT,
    env: given,
    stdio: [shows ? 'inherit' : 'ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let printed = ''
  const listens = new Promise((resolve) => {
    const hear = (text) => {
      printed = (printed + text).slice(-10_000)
      if (shows) process.stdout.write(text)
      const url = /listens on (http:\/\/[\w.:]+)/.exec(printed)?.[1]
      if (url !== undefined) resolve(url)
    }
    child.stdout.setEncoding('utf8').on('data', hear)
    child.stderr.setEncoding('utf8').on('data', hear)
  })
  const ended = once(child, 'close').then(([code]) => {
    if (code !== 0) throw new Error(`${parameters[0]} ended with ${code}\n${printed}`)
  })
  ended.catch(() => undefined)
  return { url: await Promise.race([listens, ended]) }
}

/** Ends what was started, the last first. */
export async function stopProcesses() {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
}

/** A port that was free a moment ago. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
