import { randomUUID } from 'node:crypto'
import { ToolFailure } from '../tool-service.mjs'

/** How long code may take, beside the limits of processor and memory that Brain's boxes have. */
const DEADLINE_MS = 30_000

/**
 * Runs code in boxes of a Brain server. This service is an application of it: each call gets a session of its own, whose one
 * tool is a component that evaluates JavaScript, without files, network or secrets, and which is deleted after the call.
 */
export class Boxes {
  #url
  #token
  #bytes
  #component

  /** @param {{ url: string, token?: string, bytes: Uint8Array }} options `bytes` are those of the component */
  constructor({ url, token, bytes }) {
    this.#url = url
    this.#token = token
    this.#bytes = bytes
  }

  /** The tool `run_javascript`. */
  run = async ({ arguments: { code }, signal }) => {
    const id = await this.#admitted()
    // Without the signal: a session that is made while its call goes away must be known, to be removed.
    const { session_id } = await this.#json('POST', '/v1/sessions', sessionOf(id)).catch((error) => {
      // It may be gone from the server, as after a new start with nothing kept.
      this.#component = undefined
      throw error
    })
    const path = `/v1/sessions/${session_id}`
    try {
      const call = { input: { code }, deadline_ms: DEADLINE_MS }
      return resultOf(await this.#json('POST', `${path}/tools/run/calls?wait=finished`, call, signal))
    } finally {
      await this.#remove(path)
    }
  }

  /** Ends a session, and the call that it may still have, and takes it away. */
  async #remove(path) {
    try {
      await this.#json('POST', `${path}/end`)
      await this.#json('DELETE', path)
    } catch (error) {
      console.error(`sandbox: a session is left behind: ${error.message}`)
    }
  }

  /** Once; after a failure, such as a server that is not up yet or has no sandbox, the next call asks again. */
  #admitted() {
    this.#component ??= this.#send('POST', '/v1/tools', { body: this.#bytes, type: 'application/wasm' })
      .then(({ id }) => id)
      .catch((error) => {
        this.#component = undefined
        throw error
      })
    return this.#component
  }

  #json(method, path, value, signal) {
    const body = value === undefined ? undefined : JSON.stringify(value)
    return this.#send(method, path, { body, type: 'application/json', signal })
  }

  async #send(method, path, { body, type, signal }) {
    const headers = { 'Idempotency-Key': randomUUID(), ...(body === undefined ? {} : { 'Content-Type': type }) }
    if (this.#token !== undefined) headers['Authorization'] = `Bearer ${this.#token}`
    const options = { method, headers, redirect: 'error', body: body ?? null, signal: signal ?? null }
    const response = await fetch(this.#url + path, options).catch(() => {
      throw new ToolFailure('The sandbox is off: its Brain server cannot be reached')
    })
    const answer = await response.json().catch(() => ({}))
    if (response.ok) return answer
    if (answer.code === 'sandbox_unavailable') throw new ToolFailure(`The sandbox is off: ${answer.message}`)
    throw new ToolFailure(`The sandbox refused the code: ${answer.message ?? `HTTP ${response.status}`}`)
  }
}

const sessionOf = (id) => ({
  // No model is ever asked: only the tool is called.
  model: { provider: 'openai', name: 'none', api_key: 'none' },
  tools: [
    {
      name: 'run',
      description: 'Evaluates JavaScript.',
      input_schema: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
      placements: { box: { implementation: { type: 'brain_component', entrypoint: 'run', id, configuration: {} } } },
    },
  ],
  environments: [{ name: 'box', driver: 'brain', lifecycle: 'automatic', configuration: {} }],
})

function resultOf({ outcome, results }) {
  if (outcome?.status === 'ok') return { structured_content: results.at(-1).output }
  if (outcome?.status === 'error') throw new ToolFailure(outcome.error.message)
  throw new ToolFailure(`The code was stopped: ${outcome?.status ?? 'no outcome'}`)
}
