import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** As far above this file in a checkout as in the published package. */
const WIT = fileURLToPath(new URL('../../../../wit/', import.meta.url))

/** The version of WASI that componentize-qjs 0.4 imports: two of one interface would be two. */
const WASI = '0.2.12'

/** A tool's world, with what its event loop and its random numbers need. */
export const JAVASCRIPT_WORLD = 'javascript-tool'

const PACKAGES: Readonly<Record<string, string>> = {
  'world.wit': `package brain:javascript;
world ${JAVASCRIPT_WORLD} {
  include brain:tool/tool@0.2.0;
  import wasi:clocks/monotonic-clock@${WASI};
  import wasi:random/random@${WASI};
}
`,
  'deps/io/poll.wit': `package wasi:io@${WASI};
interface poll {
  resource pollable { block: func(); }
}
`,
  'deps/clocks/monotonic-clock.wit': `package wasi:clocks@${WASI};
interface monotonic-clock {
  use wasi:io/poll@${WASI}.{pollable};
  type instant = u64;
  type duration = u64;
  now: func() -> instant;
  subscribe-duration: func(when: duration) -> pollable;
}
`,
  'deps/random/random.wit': `package wasi:random@${WASI};
interface random {
  get-random-bytes: func(len: u64) -> list<u8>;
}
`,
}

/** Writes the world into a folder, as componentize-qjs reads it. */
export async function writeJavaScriptWorld(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(PACKAGES)) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  await mkdir(join(folder, 'deps/tool'), { recursive: true })
  await cp(join(WIT, 'tool.wit'), join(folder, 'deps/tool/tool.wit'))
}
