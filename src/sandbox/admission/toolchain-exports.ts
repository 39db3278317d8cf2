import type { SortWord } from './component-walk.ts'

/** An export that a toolchain adds to those of the world for which a component is built. */
export type ToolchainExport = {
  /** A name, or an interface without its version. */
  readonly name: string
  /** The minor versions of WASI that an interface may have; other names have none. */
  readonly version?: RegExp
  readonly sort: SortWord
  /** Which toolchain adds it, and what for. */
  readonly from: string
}

/**
 * The exports that a tool may have beside its `run`, as builds for the world of tools have them: componentize-py 0.25,
 * componentize-qjs 0.4, Rust 1.85 and wit-bindgen 0.61. componentize-js 0.23 (StarlingMonkey) and Rust libraries add none.
 * Nothing calls them; what they are made of is transpiled like all the rest, so no more of them are let in than there are.
 *
 * Exports of core modules are not judged by name: they end inside the component, which cannot export a memory, and where a
 * toolchain links libraries they are every symbol of a C library. Their characters are judged (BinaryReader.skipCoreName).
 */
export const TOOLCHAIN_EXPORTS: readonly ToolchainExport[] = [
  { name: 'init', sort: 'function', from: 'componentize-qjs: loads the script while it builds' },
  { name: 'exports', sort: 'instance', from: 'componentize-py: loads the modules while it builds' },
  {
    name: 'wasi:cli/run',
    version: /^0\.2\.\d{1,4}$/,
    sort: 'instance',
    from: 'Rust: the `main` of a program, where a library was not asked for',
  },
]

/** Whether a toolchain is known to add this. */
export const isToolchainExport = (name: string, sort: SortWord): boolean =>
  TOOLCHAIN_EXPORTS.some((known) => {
    if (known.sort !== sort) return false
    if (known.version === undefined) return known.name === name
    return name.startsWith(`${known.name}@`) && known.version.test(name.slice(known.name.length + 1))
  })
