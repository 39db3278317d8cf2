import { ATTEMPTS, type Attempt } from './attempts.ts'

/** What is attacked. */
export type Target = {
  /** Writable for everybody, with files to harm and a listening socket `sock`. */
  readonly dir: string
  /** On loopback somebody listens here, and on the abstract socket `brain-PORT`. */
  readonly port: number
  /** A process that is not to be reached. */
  readonly pid: number
}

/** What attempts share. `sys` takes the numbers of a call on x86-64 and aarch64. */
const PRELUDE = `
const need = (name) => process.getBuiltinModule(name)
const fs = need('node:fs')
const net = need('node:net')
const at = (name) => T.dir + '/' + name
const made = (suffix) => at('new' + suffix)
const within = (start) => new Promise((resolve) => {
  start(resolve)
  setTimeout(resolve, 300, 'timeout')
})
const dial = (to) => within((resolve) => {
  const socket = net.connect(to, () => resolve(true))
  socket.on('error', (error) => resolve(error.code))
})
const heard = (emitter, event) => within((resolve) => {
  emitter.on(event, () => resolve(true))
  emitter.on('error', (error) => resolve(error.code))
})
const binding = (name) => process.binding(name)
const worker = (options) => heard(new (need('node:worker_threads').Worker)('1', { eval: true, ...options }), 'online')
let library
const ffi = () => need('node:ffi')
const libc = () => (library ??= ffi().dlopen(null, {
  syscall: { arguments: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], return: 'i64' },
}).functions)
const sys = (numbers, ...rest) => {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = rest
  return Number(libc().syscall(...[numbers[process.arch === 'x64' ? 0 : 1], a, b, c, d, e, f].map(BigInt)))
}
const kept = []
const address = (buffer) => ffi().getRawPointer((kept.push(buffer), buffer))
const vector = () => address(Buffer.from(new BigUint64Array([BigInt(address(Buffer.alloc(8))), 8n]).buffer))
// What is no addon is said to be none only after it was loaded.
const loaded = (file) => {
  try {
    process.dlopen({ exports: {} }, file)
  } catch (error) {
    if (/self-register/.test(error.message)) return true
    throw error
  }
}
`

const RUN = `
const attempt = async () => {
  const out = {}
  process.on('uncaughtException', () => {})
  for (const [name, attack] of attacks) {
    try {
      const late = new Promise((resolve) => setTimeout(resolve, 2000, 'no answer'))
      const result = await Promise.race([attack(), late])
      out[name] = result === true ? 'THROUGH' : String(result)
    } catch (error) {
      out[name] = error.code ?? String(error.message).slice(0, 60)
    }
  }
  return JSON.stringify(out)
}
`

/** JavaScript in which `attempt()` promises the outcomes as JSON: by name, `THROUGH` or what was answered instead. */
export function hostileSource(target: Target, attempts: readonly Attempt[] = ATTEMPTS): string {
  const pairs = attempts.map(({ name, source }) => `[${JSON.stringify(name)}, ${source}]`)
  return `const T = ${JSON.stringify(target)}\n${PRELUDE}\nconst attacks = [\n${pairs.join(',\n')}\n]\n${RUN}`
}
