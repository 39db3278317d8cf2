// What the child is sent. jco's core modules are read before its own module is evaluated, which needs them at once.
import { readChannel } from '../child-channel.ts'
import type { TranspileOrder, TranspilerStart } from './protocol.ts'

/** The part that is used here of what lib.dom would declare. */
type Compiler = { validate(bytes: Uint8Array): boolean; readonly Module: new (bytes: Uint8Array) => object }
const { WebAssembly: compiler } = globalThis as unknown as { readonly WebAssembly: Compiler }

/** @throws CompileError that says why this Node cannot run a core module. */
export function checkCore(bytes: Uint8Array): void {
  if (!compiler.validate(bytes)) void new compiler.Module(bytes)
}

const readJson = (): unknown => JSON.parse(readChannel(readChannel(4).readUInt32LE()).toString('utf8'))

const { jco } = readJson() as TranspilerStart
export const jcoCores: readonly object[] = jco.map((size) => new compiler.Module(readChannel(size)))

export type ReceivedOrder = Omit<TranspileOrder, 'upload'> & { readonly upload: Buffer }

/** Waits for the order of this process. Once. */
export function receiveOrder(): ReceivedOrder {
  const order = readJson() as TranspileOrder
  return { ...order, upload: readChannel(order.upload) }
}
