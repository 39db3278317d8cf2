// Preloaded by the examples of a page: they import what a reader installs, and get this checkout.
import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url)

const ENTRIES: Readonly<Record<string, string>> = {
  '@aexhq/brain': 'src/sdk/index.ts',
  '@aexhq/brain/package': 'src/sdk/package/package-tools.ts',
  '@aexhq/brain/runtime': 'src/sdk/runtime.ts',
  '@aexhq/brain/interop': 'src/sdk/interop.ts',
  '@aexhq/brain/http': 'src/sdk/http.ts',
  '@aexhq/brain/http/handler': 'src/sdk/http-handler.ts',
  '@aexhq/brain/http/server': 'src/sdk/http-server.ts',
}

registerHooks({
  resolve: (specifier, context, next) => {
    const entry = ENTRIES[specifier]
    if (entry !== undefined) return next(new URL(entry, root).href, context)
    const isInstalled = specifier === 'zod' || specifier.startsWith('@modelcontextprotocol/client')
    return next(specifier, isInstalled ? { ...context, parentURL: new URL('package.json', root).href } : context)
  },
})
