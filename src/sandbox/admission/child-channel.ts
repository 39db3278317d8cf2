// For the children of admission, in their boxes.
import { readSync, writeSync } from 'node:fs'

const CHANNEL = 3

/** The next bytes of fd 3. Ends the process when the server is gone. */
export function readChannel(size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(size)
  for (let at = 0; at < size;) {
    const count = readSync(CHANNEL, bytes, at, size - at, null)
    if (count === 0) process.exit(1)
    at += count
  }
  return bytes
}

/** Writes all of it to fd 3. */
export function writeChannel(bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(CHANNEL, bytes, at)
}
