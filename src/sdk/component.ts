// The published entry `@aexhq/brain/component`, which `brain build` puts into components, also in the place of
// `@aexhq/brain`. It is evaluated before the author's module, whose globals it makes.
import './component/install-globals.ts'
import { config } from 'zod'
export { BrainError } from './brain-error.ts'
export { GuestAbortController as AbortController, GuestAbortSignal as AbortSignal } from './component/abort-signal.ts'
export { GuestEvent as Event, GuestEventTarget as EventTarget } from './component/event-target.ts'
export { guestConsole as console } from './component/guest-console.ts'
export { tool } from './component/guest-tool.ts'
export { guestCrypto as crypto } from './component/random.ts'
export { structuredClone } from './component/structured-clone.ts'
export { GuestTextDecoder as TextDecoder } from './component/text-decoder.ts'
export { GuestTextEncoder as TextEncoder } from './component/text-encoder.ts'
export { clearInterval, clearTimeout, setInterval, setTimeout } from './component/timers.ts'
export { toolComponent, type GuestInvocation } from './component/tool-component.ts'

// An instance serves one call: code that Zod makes for the next would be made in vain.
config({ jitless: true })
