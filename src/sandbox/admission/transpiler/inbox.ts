// The child's order, read before jco's own module is evaluated: that needs its core modules at once.
import { readSync } from 'node:fs'
import type { TranspileOrder } from './protocol.ts'

const CHANNEL = 3

/** The part that is used here of what lib.dom would declare. */
type Compiler = { validate(bytes: Uint8Array): boolean; readonly Module: new (bytes: Uint8Array) => object }
const { WebAssembly: compiler } = globalThis as unknown as { readonly WebAssembly: Compiler }

/** @throws CompileError that says why this Node cannot run a core module. */
export function checkCore(bytes: Uint8Array): void {
  if (!compiler.validate(bytes)) void new compiler.Module(bytes)
}

function read(size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size)
  for (let at = 0; at < size;) {
    const count = readSync(CHANNEL, bytes, at, size - at, null)
    if (count === 0) process.exit(1)
    at += count
  }
  return bytes
}

export const order = JSON.parse(read(read(4).readUInt32LE()).toString('utf8')) as TranspileOrder
export const jcoCores: readonly object[] = order.jco.map((size) => new compiler.Module(read(size)))
export const upload = read(order.upload)
