// Preloaded by the examples of a page: they import what a reader installs, and get this checkout.
import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url)

registerHooks({
  resolve: (specifier, context, next) => {
    if (/^@aexhq\/brain(\/|$)/.test(specifier)) {
      const entry = `src/sdk/${specifier.slice('@aexhq/brain'.length)}/index.ts`
      return next(new URL(entry.replaceAll('//', '/'), root).href, context)
    }
    return next(
      specifier,
      specifier === 'zod' ? { ...context, parentURL: new URL('package.json', root).href } : context,
    )
  },
})
