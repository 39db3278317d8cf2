// What server and transpiler child say to each other over fd 3. The server is trusted by the child, never the reverse.

import { READY } from '../child-ready.ts'

/** Server → child, at once: u32 length of this as JSON, the JSON, then the core modules that jco itself consists of. */
export type TranspilerStart = {
  /** Their sizes. */
  readonly jco: readonly number[]
}

/** Server → child, once, then or later: u32 length of this as JSON, the JSON, then the bytes of the upload. */
export type TranspileOrder = {
  /** Size of the upload. */
  readonly upload: number
  /** Where the gate found core modules in the upload. */
  readonly modules: readonly { readonly offset: number; readonly size: number }[]
  /** JavaScript beyond this is not sent. */
  readonly maxScriptBytes: number
}

/** Child → server, frames of wire/frames.ts. */
export const FROM_TRANSPILER = {
  /** It runs, and jco is ready. */
  READY,
  /** The JavaScript. Once, before all cores. */
  SCRIPT: 2,
  /** A core that is a slice of the upload: u32 index in `modules`, then its name. */
  SLICE: 3,
  /** A core that jco made: u32 length of its name, the name, its bytes. */
  CORE: 4,
  /** Nothing follows. */
  DONE: 5,
  /** Nothing follows: u8 of TRANSPILE_FAULT, then text. */
  FAILED: 6,
} as const

export const TRANSPILE_FAULT = {
  /** jco refused the component or broke on it. */
  GENERATOR: 0,
  /** Node cannot compile one of its core modules. */
  CORE: 1,
  /** The generated JavaScript is larger than allowed: the text is its size. */
  LARGE: 2,
} as const
