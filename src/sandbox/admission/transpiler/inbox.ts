// The child's order, read before jco's own module is evaluated: that needs its core modules at once.
import { readChannel } from '../child-channel.ts'
import type { TranspileOrder } from './protocol.ts'

/** The part that is used here of what lib.dom would declare. */
type Compiler = { validate(bytes: Uint8Array): boolean; readonly Module: new (bytes: Uint8Array) => object }
const { WebAssembly: compiler } = globalThis as unknown as { readonly WebAssembly: Compiler }

/** @throws CompileError that says why this Node cannot run a core module. */
export function checkCore(bytes: Uint8Array): void {
  if (!compiler.validate(bytes)) void new compiler.Module(bytes)
}

export const order = JSON.parse(readChannel(readChannel(4).readUInt32LE()).toString('utf8')) as TranspileOrder
export const jcoCores: readonly object[] = order.jco.map((size) => new compiler.Module(readChannel(size)))
export const upload = readChannel(order.upload)
