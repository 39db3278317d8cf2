// Stands in for hostile output of the generator: runs in a box as a "component", and without a box as the control. An
// attack gives true when it got through. TARGET is filled in: {pid, port, dir, skip}; everything in dir is writable for
// everybody, so that ordinary permissions of files are not what denies.
const need = (name) => process.getBuiltinModule(name)
const fs = need('node:fs')
const net = need('node:net')
const T = TARGET
const canary = `${T.dir}/new`
const dial = (to) =>
  new Promise((resolve) => {
    const socket = net.connect(to, () => resolve(true))
    socket.on('error', (error) => resolve(error.code))
    setTimeout(resolve, 300, 'timeout')
  })
const heard = (emitter, event) =>
  new Promise((resolve) => {
    emitter.on(event, () => resolve(true))
    emitter.on('error', (error) => resolve(error.code))
    setTimeout(resolve, 300, 'timeout')
  })
const binding = (name) => process.binding(name)
const worker = (options) => heard(new (need('node:worker_threads').Worker)('1', { eval: true, ...options }), 'online')

const attacks = {
  'read /etc/passwd': () => fs.readFileSync('/etc/passwd').length > 0,
  'open /etc/hostname': () => fs.openSync('/etc/hostname') >= 0,
  'read own environ': () => fs.readFileSync('/proc/self/environ') && true,
  'read parent environ': () => fs.readFileSync(`/proc/${T.pid}/environ`) && true,
  'open parent mem': () => fs.openSync(`/proc/${T.pid}/mem`, 'r+') >= 0,
  'read own maps': () => fs.readFileSync('/proc/self/maps').length > 0,
  'list /': () => fs.readdirSync('/').length > 0,
  'list /proc': () => fs.readdirSync('/proc').length > 0,
  'list libraries': () => fs.readdirSync('/usr/lib').length > 0,
  'write a file': () => (fs.writeFileSync(canary, 'x'), true),
  'make a directory': () => (fs.mkdirSync(`${canary}.d`), true),
  'make a symbolic link': () => (fs.symlinkSync('/etc', `${canary}.l`), true),
  'make a hard link': () => (fs.linkSync(`${T.dir}/link`, `${canary}.h`), true),
  unlink: () => (fs.unlinkSync(`${T.dir}/unlink`), true),
  rename: () => (fs.renameSync(`${T.dir}/rename`, `${canary}.moved`), true),
  'set times': () => (fs.utimesSync(`${T.dir}/chmod`, new Date(), new Date()), true),
  truncate: () => (fs.truncateSync(`${T.dir}/truncate`, 0), true),
  'spawn a shell': () => need('node:child_process').spawnSync('/bin/sh', ['-c', 'id']).status === 0,
  'spawn node': () => need('node:child_process').spawnSync(process.execPath, ['-v']).status === 0,
  'spawn_sync binding': () => {
    const stdio = [{ type: 'ignore' }, { type: 'ignore' }, { type: 'ignore' }]
    const result = binding('spawn_sync').spawn({ file: '/bin/sh', args: ['sh', '-c', 'id'], envPairs: [], stdio })
    return result.error === undefined && result.status === 0
  },
  execve: () => process.execve('/bin/sh', ['sh', '-c', 'exit 0'], {}),
  worker: () => worker({}),
  'worker without flags': () => worker({ execArgv: [] }),
  'worker with NODE_OPTIONS': () => worker({ env: { NODE_OPTIONS: '' } }),
  ffi: () => need('node:ffi').dlopen(null, {}) && true,
  'sqlite attach': () => {
    const database = new (need('node:sqlite').DatabaseSync)(':memory:')
    database.exec(`attach '${canary}.db' as a; create table a.t(x)`)
    return true
  },
  'sqlite file': () => new (need('node:sqlite').DatabaseSync)(`${canary}2.db`) && true,
  'connect TCP': () => dial({ port: T.port, host: '127.0.0.1' }),
  'connect a unix socket': () => dial({ path: `${T.dir}/sock` }),
  'connect an abstract socket': () => dial({ path: `\0brain-${T.port}` }),
  'listen on TCP': () => heard(net.createServer().listen(0, '127.0.0.1'), 'listening'),
  'listen on an abstract socket': () => heard(net.createServer().listen(`\0brain-new-${T.port}`), 'listening'),
  'bind UDP': () => {
    const socket = need('node:dgram').createSocket('udp4')
    socket.bind(0)
    return heard(socket, 'listening')
  },
  'send UDP': () =>
    new Promise((resolve) => {
      const socket = need('node:dgram').createSocket('udp4')
      socket.on('error', (error) => resolve(error.code))
      socket.send('x', 9, '127.0.0.1', (error) => resolve(error ? error.code : true))
      setTimeout(resolve, 300, 'timeout')
    }),
  'look up a name': () =>
    new Promise((resolve) => need('node:dns').lookup('localhost', (error) => resolve(error ? error.code : true))),
  fetch: () => fetch(`http://127.0.0.1:${T.port}`).then(() => true),
  'tcp_wrap binding': () => {
    const { TCP, constants } = binding('tcp_wrap')
    return new TCP(constants.SOCKET).bind('127.0.0.1', 0) === 0
  },
  'pipe_wrap binding': () => {
    const { Pipe, constants } = binding('pipe_wrap')
    return new Pipe(constants.SERVER).bind(`${canary}.sock`) === 0
  },
  'kill the parent (0)': () => process.kill(T.pid, 0),
  'kill the parent (TERM)': () => process.kill(T.pid, 'SIGTERM'),
  'kill the process group': () => process.kill(0, 'SIGTERM'),
  'kill everything': () => process.kill(-1, 0),
  'become root': () => (process.setuid(0), process.getuid() === 0),
  'set a priority': () => (need('node:os').setPriority(T.pid, 19), true),
  inspector: () => (need('node:inspector').open(0), true),
  wasi: () => {
    const { WASI } = need('node:wasi')
    return new WASI({ version: 'preview1', preopens: { '/': '/' } }) && fs.readdirSync('/').length > 0
  },
  eval: () => (0, eval)('1') === 1,
  'new Function': () => new Function('return 1')() === 1,
  'import a file': () => import(`${T.dir}/x.mjs`).then(() => true),
  'require a file': () => need('node:module').createRequire('/')(`${T.dir}/x.json`) && true,
  'heap snapshot': () => (need('node:v8').writeHeapSnapshot(`${canary}.heap`), fs.existsSync(`${canary}.heap`)),
  report: () => (process.report.writeReport(`${canary}.report`), fs.existsSync(`${canary}.report`)),
  environment: () => Object.keys(process.env).length > 0,
  'gc of the runtime': () => typeof globalThis.gc === 'function',
}

export async function instantiate() {
  const out = {}
  process.on('uncaughtException', () => {})
  for (const [name, attack] of Object.entries(attacks)) {
    if (T.skip.includes(name)) continue
    try {
      const late = new Promise((resolve) => setTimeout(resolve, 600, 'no answer'))
      const result = await Promise.race([attack(), late])
      out[name] = result === true ? 'THROUGH' : String(result)
    } catch (error) {
      out[name] = error.code ?? String(error.message).slice(0, 60)
    }
  }
  return { run: () => JSON.stringify(out) }
}
