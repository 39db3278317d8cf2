import { readFile } from 'node:fs/promises'
import { serveTools, startService } from '../tool-service.mjs'
import { Boxes } from './boxes.mjs'

const { BRAIN_TOOLS_KEY, SANDBOX_LISTEN, SANDBOX_COMPONENT, BRAIN_URL, BRAIN_API_KEY } = process.env

await startService('sandbox', async (stopped) => {
  const bytes = await readFile(SANDBOX_COMPONENT ?? new URL('evaluate.wasm', import.meta.url)).catch(() => {
    throw new Error('its component is not there; node examples/sandbox/build.mjs makes it')
  })
  const boxes = new Boxes({ url: BRAIN_URL ?? 'http://127.0.0.1:8080', token: BRAIN_API_KEY, bytes })
  await serveTools({
    title: 'sandbox',
    listen: SANDBOX_LISTEN ?? '127.0.0.1:8082',
    token: BRAIN_TOOLS_KEY,
    stopped,
    tools: { run_javascript: boxes.run },
  })
})
