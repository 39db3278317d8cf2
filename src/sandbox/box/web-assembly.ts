// The part of WebAssembly that is used here of what lib.dom would declare.
export type Memory = { readonly buffer: { readonly byteLength: number } }
export type Instance = { readonly exports: Readonly<Record<string, unknown>> }
export type Module = { readonly __module?: never }

type Namespace = {
  readonly Module: new (bytes: Uint8Array) => Module
  readonly Instance: new (module: Module, imports: object) => Instance
  readonly Memory: abstract new (...parts: never) => Memory
}

/** Taken before any guest code runs. */
export const { WebAssembly: wasm } = globalThis as unknown as { readonly WebAssembly: Namespace }
export const { Module: WasmModule, Instance: WasmInstance, Memory: WasmMemory } = wasm
