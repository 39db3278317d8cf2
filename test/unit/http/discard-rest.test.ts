import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { discardRest } from '../../../src/http/bodies.ts'

const MIB = 1024 * 1024

/** A body of pieces of 32 MiB that counts what was asked of it. */
function body(pieces: number): { readonly request: IncomingMessage; readonly taken: () => number } {
  const piece = Buffer.alloc(32 * MIB)
  let taken = 0
  const request = new Readable({
    read() {
      if (taken / piece.length >= pieces) return void this.push(null)
      taken += piece.length
      // Pieces come from a network, each in a turn of its own.
      setImmediate(() => this.push(piece))
    },
  })
  return { request: request as IncomingMessage, taken: () => taken }
}

it('reads what is left of a body to its end', async () => {
  const { request, taken } = body(3)
  await discardRest(request)
  expect([taken(), request.readableEnded]).toEqual([96 * MIB, true])
})

it('stops after 256 MiB of one that goes on', async () => {
  const { request, taken } = body(Number.POSITIVE_INFINITY)
  await discardRest(request)
  expect(taken()).toBeGreaterThan(256 * MIB)
  // A stream asks for pieces ahead.
  expect(taken()).toBeLessThanOrEqual((256 + 4 * 32) * MIB)
})

it('does not wait for one that is gone', async () => {
  const { request } = body(1)
  request.destroy()
  await discardRest(request)
})
