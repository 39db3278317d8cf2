import type { Plugin } from 'esbuild'

/** The web's globals that QuickJS lacks and `@aexhq/brain/component` has. */
const PROVIDED =
  `AbortController AbortSignal Event EventTarget TextDecoder TextEncoder clearInterval clearTimeout console crypto
  setInterval setTimeout structuredClone`.split(/\s+/)

const APPLICATION = 'leave the tool in your application, or let a tool in Rust or Python do it'
const BYTES = 'use Uint8Array, TextEncoder and TextDecoder'
const NETWORK = `a component in JavaScript has no network; ${APPLICATION}`
const STREAMS = 'use async iterators'
const FORMAT = 'write numbers, dates and texts yourself'

/** What a component has not, and what to do instead. */
const ABSENT: Readonly<Record<string, string>> = {
  Blob: BYTES,
  Buffer: BYTES,
  EventSource: NETWORK,
  File: BYTES,
  FileReader: BYTES,
  FormData: NETWORK,
  Headers: NETWORK,
  Intl: FORMAT,
  MessageChannel: 'use queueMicrotask',
  ReadableStream: STREAMS,
  Request: NETWORK,
  Response: NETWORK,
  TransformStream: STREAMS,
  URL: 'take URLs apart with a package that brings its own parser',
  URLSearchParams: 'use encodeURIComponent and decodeURIComponent',
  WebAssembly: APPLICATION,
  WebSocket: NETWORK,
  Worker: 'a component has one thread',
  WritableStream: STREAMS,
  XMLHttpRequest: NETWORK,
  __dirname: 'import what you need as a module',
  __filename: 'import what you need as a module',
  document: APPLICATION,
  fetch: NETWORK,
  global: 'use globalThis',
  localStorage: 'nothing is kept between calls; return it, or emit an event',
  process: 'take what differs as options of the tool',
  require: 'use import',
  setImmediate: 'use queueMicrotask or setTimeout',
  window: 'use globalThis',
}

const PREFIX = 'component-global:'
const NAMESPACE = 'component-global'

/** Every name, as an entry of esbuild's `inject`: what the code does not mention is not put in. */
export const COMPONENT_GLOBALS: readonly string[] = [...PROVIDED, ...Object.keys(ABSENT)].map((name) => PREFIX + name)

/** Puts in what there is, also as a global for who asks `typeof`, and undefined for what there is not. */
export const componentGlobals = (): Plugin => ({
  name: NAMESPACE,
  setup(build) {
    build.onResolve({ filter: new RegExp(`^${PREFIX}`) }, ({ path }) => ({
      path: path.slice(PREFIX.length),
      namespace: NAMESPACE,
      sideEffects: false,
    }))
    build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path: name }) => ({
      contents: name in ABSENT ? absent(name) : provided(name),
      resolveDir: '/',
    }))
  },
})

const provided = (name: string): string => `import { ${name} } from '@aexhq/brain/component'
Object.defineProperty(globalThis, '${name}', { value: ${name}, configurable: true, writable: true })
export { ${name}, ${name} as 'globalThis.${name}' }`

const absent = (name: string): string =>
  `const absent = undefined\nexport { absent as ${name}, absent as 'globalThis.${name}' }`

export type AbsentGlobal = { readonly name: string; readonly remedy: string }

/** The absent ones that are in a bundle. @param inputs names of its inputs, as the metafile of esbuild has them */
export const absentAmong = (inputs: readonly string[]): readonly AbsentGlobal[] =>
  inputs.flatMap((input) => {
    const name = input.slice(PREFIX.length)
    return input.startsWith(PREFIX) && ABSENT[name] !== undefined ? [{ name, remedy: ABSENT[name] }] : []
  })
