// Runs in a box, once: turns the upload into JavaScript and core modules with jco's raw generator, and checks that this
// Node can compile them. It compiles, it never runs what it made.
import type { GenerateOptions, Transpiled } from '@bytecodealliance/jco-transpile/component'
import { frame, type Part } from '../../wire/frames.ts'
import { writeChannel } from '../child-channel.ts'
import { checkCore, receiveOrder, type ReceivedOrder } from './inbox.ts'
import { FROM_TRANSPILER, TRANSPILE_FAULT } from './protocol.ts'

const MAX_TEXT = 2000

/** jco's entry, which the bundler hands over: its package's own entry would start a worker. */
export type Generator = {
  readonly ready: Promise<void>
  readonly generate: (component: Uint8Array, options: GenerateOptions) => Transpiled
}

const OPTIONS: GenerateOptions = {
  name: 'tool',
  instantiation: { tag: 'async' },
  noTypescript: true,
  noNodejsCompat: true,
  base64Cutoff: 0,
}

const send = (type: number, ...parts: readonly Part[]): void => writeChannel(frame(type, ...parts))

const u32 = (value: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function fail(fault: number, text: string): never {
  send(FROM_TRANSPILER.FAILED, Buffer.from([fault]), text.slice(0, MAX_TEXT))
  process.exit(0)
}

const textOf = (error: unknown): string => {
  if (typeof error === 'object' && error !== null && 'payload' in error) return String(error.payload)
  return error instanceof Error ? error.message : String(error)
}

/** The first failure of a step, sent as `fault`. */
function attempt<T>(fault: number, step: () => T): T {
  try {
    return step()
  } catch (error) {
    return fail(fault, textOf(error))
  }
}

function sendScript(bytes: Uint8Array, { maxScriptBytes }: ReceivedOrder): void {
  if (bytes.length > maxScriptBytes) fail(TRANSPILE_FAULT.LARGE, String(bytes.length))
  send(FROM_TRANSPILER.SCRIPT, bytes)
}

function sendCore(name: string, bytes: Uint8Array, { upload, modules }: ReceivedOrder): void {
  attempt(TRANSPILE_FAULT.CORE, () => checkCore(bytes))
  const isSame = ({ offset, size }: { offset: number; size: number }) =>
    size === bytes.length && upload.compare(bytes, 0, size, offset, offset + size) === 0
  const index = modules.findIndex(isSame)
  if (index >= 0) send(FROM_TRANSPILER.SLICE, u32(index), name)
  else send(FROM_TRANSPILER.CORE, u32(Buffer.byteLength(name)), name, bytes)
}

/** Serves the one order of this process. */
export async function serve({ ready, generate }: Generator): Promise<void> {
  await ready
  send(FROM_TRANSPILER.READY)
  const order = receiveOrder()
  const { files } = attempt(TRANSPILE_FAULT.GENERATOR, () => generate(order.upload, OPTIONS))
  for (const [name, bytes] of files) if (name.endsWith('.js')) sendScript(bytes, order)
  for (const [name, bytes] of files) if (name.endsWith('.wasm')) sendCore(name, bytes, order)
  send(FROM_TRANSPILER.DONE)
  process.exit(0)
}
