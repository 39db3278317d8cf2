// node examples/sandbox/build.mjs FILE.wasm: makes the component of evaluate.js, which takes a few seconds
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { componentize } from 'componentize-qjs'

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url))
const target = process.argv[2] ?? path('evaluate.wasm')
const jsSource = await readFile(path('evaluate.js'), 'utf8')
const { component } = await componentize({ witPath: path('../../wit/tool.wit'), jsSource, world: 'tool', sync: true })
await writeFile(target, component)
console.log(`wrote ${target}`)
