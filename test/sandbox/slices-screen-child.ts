// Runs jco's generator on one component after another, as the transpiler's child does once. It is asked by slices-screen.ts.
import * as generator from '@bytecodealliance/jco-transpile/component'

const { $init, generate } = generator as typeof generator & { readonly $init: Promise<void> }
await $init

/** As the transpiler's fault says it (transpile.ts). */
const isMalformed = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'payload' in error && /\(at offset 0x/.test(String(error.payload))

process.on('message', (component: Uint8Array) => {
  let verdict = 'taken'
  try {
    const options = {
      instantiation: { tag: 'async' },
      noTypescript: true,
      noNodejsCompat: true,
      base64Cutoff: 0,
    } as const
    generate(component, { name: 'tool', ...options })
  } catch (error) {
    verdict = isMalformed(error) ? 'malformed' : 'unsure'
    // After a panic it is in no defined state.
    if (error instanceof Error && error.name === 'RuntimeError') process.exit(1)
  }
  process.send?.(verdict)
})
