import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkWorld, WORLDS } from '../../../src/sandbox/admission/world.ts'
import { GuestWorld } from '../../../src/sandbox/box/wasi/imports.ts'
import { KnownFacts, Facts } from '../../../src/sandbox/box/wasi/known.ts'

const nothing = (): never => expect.unreachable()

/** Every WASI 0.2 interface that the reference has types for. */
const KNOWN_INTERFACES = readdirSync(
  new URL('../../../node_modules/@bytecodealliance/preview2-shim/types/interfaces/', import.meta.url),
).map((file) => file.replace(/^wasi-(\w+)-(.+)\.d\.ts$/, 'wasi:$1/$2'))

const isAdmitted = (name: string): boolean => {
  try {
    const version = name.startsWith('wasi:') ? '0.2.6' : '0.2.0'
    const world = name.startsWith('brain:agentloop') ? WORLDS.agentloop : WORLDS.tool
    return (
      checkWorld(
        [{ name: `${name}@${version}`, sort: 'instance', offset: 0 }],
        [{ name: world.entry, sort: 'function', offset: 0 }],
        world,
      ).length >= 0
    )
  } catch {
    return false
  }
}

describe('GuestWorld', () => {
  it('has every interface that admission lets in, and no other', () => {
    const channel = { fileRequest: nothing, egressRequest: nothing, hostCall: nothing, writeOutput: nothing }
    const interfaces = Object.keys(new GuestWorld(channel, { guestHandles: 1 }).imports)
    expect(interfaces.filter((name) => !isAdmitted(name))).toEqual([])
    expect(KNOWN_INTERFACES.filter((name) => isAdmitted(name) && !interfaces.includes(name))).toEqual([])
    expect(KNOWN_INTERFACES.filter(isAdmitted).length).toBeGreaterThan(25)
  })
})

describe('KnownFacts', () => {
  const facts = new Facts(Buffer.alloc(48))

  it('`recall()` answers each use as often as it was learnt, under every key', () => {
    const known = new KnownFacts()
    known.learn(['one', 'two'], facts, { stat: 1, identity: 2 })
    expect(known.recall('one', 'stat')).toBe(facts)
    expect(known.recall('two', 'stat')).toBeUndefined()
    expect([known.recall('two', 'identity'), known.recall('one', 'identity'), known.recall('one', 'identity')]).toEqual(
      [facts, facts, undefined],
    )
    expect(known.recall('three', 'stat')).toBeUndefined()
  })

  it('`forget()` forgets all, and so does having learnt too much', () => {
    const known = new KnownFacts()
    known.learn(['one'], facts, { stat: 9, identity: 9 })
    known.forget()
    expect(known.recall('one', 'stat')).toBeUndefined()
    known.learn(['one'], facts, { stat: 9, identity: 9 })
    for (let i = 0; i < 5000; i++) known.learn([`more ${i}`], facts, { stat: 1, identity: 1 })
    expect(known.recall('one', 'stat')).toBeUndefined()
    expect(known.recall('more 4999', 'stat')).toBe(facts)
  })
})
