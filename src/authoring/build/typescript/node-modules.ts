import { builtinModules } from 'node:module'
import type { Plugin } from 'esbuild'

const REMEDIES: Readonly<Record<string, string>> = {
  assert: 'throw errors yourself',
  buffer: 'use Uint8Array, TextEncoder and TextDecoder',
  crypto: 'use the global crypto for random values, and a package in plain JavaScript for digests',
  events: 'use EventTarget',
  fs: 'a component in JavaScript has no files; write a tool that needs them in Rust or Python',
  os: 'take what differs as options of the tool',
  path: 'put paths together as texts, with /',
  perf_hooks: 'use the global performance',
  process: 'take what differs as options of the tool',
  timers: 'use the global setTimeout',
  util: 'use TextEncoder, structuredClone and Promise of the web',
}

const OTHERS = 'use what the web has, or leave the tool in your application'

const NAMES = new Set(builtinModules)

/** Refuses modules of Node, by name and with what to do instead. @param except importers that may have them */
export const refuseNodeModules = (except: readonly string[] = []): Plugin => ({
  name: 'node-modules',
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      const name = path.replace(/^node:/, '')
      if (except.includes(importer) && path.startsWith('node:')) return { external: true }
      if (pluginData === PASSED || (!path.startsWith('node:') && !NAMES.has(name))) return undefined
      // A package may have the name of a module of Node: with it installed, a bundle for the web takes the package.
      if (!path.startsWith('node:')) {
        const found = await build.resolve(path, { importer, resolveDir, kind, pluginData: PASSED })
        if (found.errors.length === 0) return found
      }
      const remedy = REMEDIES[name.split('/')[0] ?? ''] ?? OTHERS
      return { errors: [{ text: `"${path}" is a module of Node, which a component has not: ${remedy}` }] }
    })
  },
})

const PASSED = Symbol('passed')
