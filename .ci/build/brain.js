#!/usr/bin/env node
// The command of the published package. It is the only file that an older Node gets to see, so it can say what is wrong.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 26 || (major === 26 && minor < 10)) {
  process.stderr.write(`Cannot start brain: it needs Node 26.10 or newer, this is ${process.versions.node}\n`)
  process.exit(1)
}

// What is used of Node's experimental modules is held by tests; the notice would stand in every log.
process.removeAllListeners('warning')
process.on('warning', (warning) => {
  if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${warning.stack ?? warning.message}\n`)
})

// Before the modules are loaded that it is for.
const { keepCompiled } = await import('../lib/cli/keep-compiled.js')
keepCompiled(process.env)
await import('../lib/cli/brain.js')
