// Preloaded by the examples of a page: they import what a reader installs, and get this checkout.
import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url)

const ENTRIES: Readonly<Record<string, string>> = {
  '@aexhq/brain': 'index.ts',
  '@aexhq/brain/http': 'http.ts',
  '@aexhq/brain/http/handler': 'http-handler.ts',
  '@aexhq/brain/http/server': 'http-server.ts',
}

registerHooks({
  resolve: (specifier, context, next) => {
    const entry = ENTRIES[specifier]
    if (entry !== undefined) return next(new URL(`src/sdk/${entry}`, root).href, context)
    return next(
      specifier,
      specifier === 'zod' ? { ...context, parentURL: new URL('package.json', root).href } : context,
    )
  },
})
