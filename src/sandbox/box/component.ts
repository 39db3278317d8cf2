import { runInThisContext } from 'node:vm'
import type { LoadHead } from '../wire/box-frames.ts'
import type { unpackAgentloopEntry, unpackToolEntry } from '../wire/entries.ts'
import { plainScript } from '../wire/plain-script.ts'
import { type Instance, type Memory, type Module, WasmInstance, WasmMemory, WasmModule } from './web-assembly.ts'

/** What a component exports, as jco gives it. */
export type Guest = {
  /** Of a tool: the text of its result. */
  readonly run: (invocation: ReturnType<typeof unpackToolEntry>) => unknown
  /** Of an agentloop. */
  readonly turn: (input: ReturnType<typeof unpackAgentloopEntry>) => { readonly resultJson?: unknown }
}

type Script = {
  readonly instantiate: (
    getCoreModule: (name: string) => Module,
    imports: object,
    instantiateCore: (module: Module, imports: object) => Instance,
  ) => Promise<Guest>
  /** Lets go of the last instance; a script that keeps none has no such function. */
  readonly release: () => void
}

/** Hostile text, and meant to run in this process and no other. */
const evaluate = (js: string): Script => runInThisContext(plainScript(js), { filename: 'tool.js' }) as Script

/** A component compiled once, of which instances are made again and again; it knows what memory they took. */
export class Component {
  readonly #modules = new Map<string, Module>()
  readonly #script: Script
  readonly #imports: object
  readonly #memoryNames = new Map<Module, readonly string[]>()
  #memories = new Set<Memory>()

  constructor(head: LoadHead, code: Buffer, imports: object) {
    let at = head.js
    for (const [name, size] of head.cores) this.#modules.set(name, new WasmModule(code.subarray(at, (at += size))))
    this.#script = evaluate(code.toString('utf8', 0, head.js))
    this.#imports = imports
  }

  /** A fresh instance. `memoryBytes` counts for it from now on; only one lives at a time. */
  async instantiate(): Promise<Guest> {
    this.release()
    // In an object: an export named `then` would make the instance itself a promise that never settles.
    const { guest } = await wrapped(this.#script.instantiate(this.#module, this.#imports, this.#instantiateCore))
    return guest
  }

  /** Nothing holds the latest instance from here on, so that it can be collected. */
  release(): void {
    this.#script.release()
    this.#memories = new Set()
  }

  /** Linear memory of the latest instance. */
  get memoryBytes(): number {
    let sum = 0
    for (const memory of this.#memories) sum += memory.buffer.byteLength
    return sum
  }

  readonly #module = (name: string): Module => {
    const module = this.#modules.get(name)
    if (module === undefined) throw new Error(`there is no core module ${name}`)
    return module
  }

  readonly #instantiateCore = (module: Module, imports: object): Instance => {
    const instance = new WasmInstance(module, imports)
    let names = this.#memoryNames.get(module)
    if (names === undefined) {
      // Once per module: those of a Python component have thousands of exports.
      names = Object.keys(instance.exports).filter((name) => instance.exports[name] instanceof WasmMemory)
      this.#memoryNames.set(module, names)
    }
    for (const name of names) {
      const memory = instance.exports[name]
      if (memory instanceof WasmMemory) this.#memories.add(memory)
    }
    return instance
  }
}

const wrapped = async (guest: Promise<Guest>): Promise<{ readonly guest: Guest }> => ({ guest: await guest })
