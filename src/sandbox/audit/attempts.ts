/** One thing that hostile JavaScript in a box tries. */
export type Attempt = {
  readonly name: string
  readonly category: string
  /**
   * What it would harm if no box held it: its own process, or others on the machine. `inner` harms nothing and succeeds in
   * any plain Node: the flags of Node alone deny it. Default: nothing.
   */
  readonly reach?: 'inner' | 'process' | 'machine'
  /** It makes system calls by itself, so it proves something of the system only where the flags of Node let it. */
  readonly needs?: 'ffi'
  /** An expression: a function that gives true, or a promise of true, when it got through. See hostile-program.ts. */
  readonly source: string
}

/** Everything in the attacked directory is writable for everybody: ordinary permissions of files are not what denies. */
export const ATTEMPTS: readonly Attempt[] = [
  { name: 'read /etc/passwd', category: 'files', source: "() => fs.readFileSync('/etc/passwd').length > 0" },
  { name: 'open /etc/hostname', category: 'files', source: "() => fs.openSync('/etc/hostname') >= 0" },
  { name: 'read own environ', category: 'proc', source: "() => fs.readFileSync('/proc/self/environ') && true" },
  {
    name: 'read parent environ',
    category: 'proc',
    source: "() => fs.readFileSync('/proc/' + T.pid + '/environ') && true",
  },
  { name: 'open parent mem', category: 'proc', source: "() => fs.openSync('/proc/' + T.pid + '/mem', 'r+') >= 0" },
  { name: 'read own maps', category: 'proc', source: "() => fs.readFileSync('/proc/self/maps').length > 0" },
  { name: 'list /', category: 'files', source: "() => fs.readdirSync('/').includes(T.dir.split('/')[1])" },
  { name: 'list /proc', category: 'proc', source: "() => fs.readdirSync('/proc').length > 0" },
  { name: 'list /etc', category: 'files', source: "() => fs.readdirSync('/etc').includes('passwd')" },
  { name: 'write a file', category: 'files', source: "() => (fs.writeFileSync(made(''), 'x'), true)" },
  { name: 'make a directory', category: 'files', source: "() => (fs.mkdirSync(made('.d')), true)" },
  { name: 'make a symbolic link', category: 'files', source: "() => (fs.symlinkSync('/etc', made('.l')), true)" },
  { name: 'make a hard link', category: 'files', source: "() => (fs.linkSync(at('link'), made('.h')), true)" },
  { name: 'unlink', category: 'files', source: "() => (fs.unlinkSync(at('unlink')), true)" },
  { name: 'rename', category: 'files', source: "() => (fs.renameSync(at('rename'), made('.moved')), true)" },
  { name: 'set times', category: 'files', source: "() => (fs.utimesSync(at('chmod'), new Date(), new Date()), true)" },
  { name: 'truncate', category: 'files', source: "() => (fs.truncateSync(at('truncate'), 0), true)" },
  {
    name: 'spawn a shell',
    category: 'child',
    source: "() => need('node:child_process').spawnSync('/bin/sh', ['-c', 'id']).status === 0",
  },
  {
    name: 'spawn node',
    category: 'child',
    source: "() => need('node:child_process').spawnSync(process.execPath, ['-v']).status === 0",
  },
  {
    name: 'spawn_sync binding',
    category: 'child',
    source: `() => {
const stdio = [{ type: 'ignore' }, { type: 'ignore' }, { type: 'ignore' }]
const result = binding('spawn_sync').spawn({ file: '/bin/sh', args: ['sh', '-c', 'id'], envPairs: [], stdio })
return result.error === undefined && result.status === 0
  }`,
  },
  {
    name: 'execve',
    category: 'child',
    reach: 'process',
    source: "() => process.execve('/bin/sh', ['sh', '-c', 'exit 0'], {})",
  },
  { name: 'worker', category: 'worker', reach: 'inner', source: '() => worker({})' },
  { name: 'worker without flags', category: 'worker', reach: 'inner', source: '() => worker({ execArgv: [] })' },
  {
    name: 'worker with NODE_OPTIONS',
    category: 'worker',
    reach: 'inner',
    source: "() => worker({ env: { NODE_OPTIONS: '' } })",
  },
  { name: 'ffi', category: 'ffi', reach: 'inner', source: "() => need('node:ffi').dlopen(null, {}) && true" },
  {
    name: 'sqlite attach',
    category: 'sqlite',
    source: `() => {
const database = new (need('node:sqlite').DatabaseSync)(':memory:')
database.exec("attach '" + made('.db') + "' as a; create table a.t(x)")
return true
  }`,
  },
  {
    name: 'sqlite file',
    category: 'sqlite',
    source: "() => new (need('node:sqlite').DatabaseSync)(made('2.db')) && true",
  },
  { name: 'connect TCP', category: 'net', source: "() => dial({ port: T.port, host: '127.0.0.1' })" },
  { name: 'connect a unix socket', category: 'unix sockets', source: "() => dial({ path: at('sock') })" },
  {
    name: 'connect an abstract socket',
    category: 'unix sockets',
    source: "() => dial({ path: '\\0brain-' + T.port })",
  },
  {
    name: 'listen on TCP',
    category: 'net',
    source: "() => heard(net.createServer().listen(0, '127.0.0.1'), 'listening')",
  },
  {
    name: 'listen on an abstract socket',
    category: 'unix sockets',
    source: "() => heard(net.createServer().listen('\\0brain-new-' + T.port), 'listening')",
  },
  {
    name: 'bind UDP',
    category: 'net',
    source: `() => {
const socket = need('node:dgram').createSocket('udp4')
socket.bind(0)
return heard(socket, 'listening')
  }`,
  },
  {
    name: 'send UDP',
    category: 'net',
    source: `() =>
new Promise((resolve) => {
  const socket = need('node:dgram').createSocket('udp4')
  socket.on('error', (error) => resolve(error.code))
  socket.send('x', 9, '127.0.0.1', (error) => resolve(error ? error.code : true))
  setTimeout(resolve, 300, 'timeout')
})`,
  },
  {
    name: 'look up a name',
    category: 'dns',
    source: `() =>
new Promise((resolve) => need('node:dns').lookup('localhost', (error) => resolve(error ? error.code : true)))`,
  },
  { name: 'fetch', category: 'net', source: "() => fetch('http://127.0.0.1:' + T.port).then(() => true)" },
  {
    name: 'tcp_wrap binding',
    category: 'net',
    source: `() => {
const { TCP, constants } = binding('tcp_wrap')
return new TCP(constants.SOCKET).bind('127.0.0.1', 0) === 0
  }`,
  },
  {
    name: 'pipe_wrap binding',
    category: 'unix sockets',
    source: `() => {
const { Pipe, constants } = binding('pipe_wrap')
return new Pipe(constants.SERVER).bind(made('.sock')) === 0
  }`,
  },
  { name: 'kill the parent (0)', category: 'kill and ptrace', source: '() => process.kill(T.pid, 0)' },
  {
    name: 'kill the parent (TERM)',
    category: 'kill and ptrace',
    reach: 'machine',
    source: "() => process.kill(T.pid, 'SIGTERM')",
  },
  {
    name: 'kill the process group',
    category: 'kill and ptrace',
    reach: 'machine',
    source: "() => process.kill(0, 'SIGTERM')",
  },
  { name: 'signal the process group (0)', category: 'kill and ptrace', source: '() => process.kill(0, 0)' },
  { name: 'signal everything (0)', category: 'kill and ptrace', source: '() => process.kill(-1, 0)' },
  { name: 'become root', category: 'identity', source: '() => (process.setuid(0), process.getuid() === 0)' },
  {
    name: 'set a priority',
    category: 'kill and ptrace',
    reach: 'machine',
    source: "() => (need('node:os').setPriority(T.pid, 19), true)",
  },
  { name: 'inspector', category: 'inspector', reach: 'inner', source: "() => (need('node:inspector').open(0), true)" },
  {
    name: 'wasi',
    category: 'wasi',
    source: `() => {
const { WASI } = need('node:wasi')
return new WASI({ version: 'preview1', preopens: { '/': '/' } }) && fs.readdirSync('/').includes(T.dir.split('/')[1])
  }`,
  },
  { name: 'eval', category: 'eval', source: "() => (0, eval)('1') === 1" },
  { name: 'new Function', category: 'eval', source: "() => new Function('return 1')() === 1" },
  { name: 'import a file', category: 'files', source: "() => import(at('x.mjs')).then(() => true)" },
  {
    name: 'require a file',
    category: 'files',
    source: "() => need('node:module').createRequire('/')(at('x.json')) && true",
  },
  {
    name: 'heap snapshot',
    category: 'files',
    source: "() => (need('node:v8').writeHeapSnapshot(made('.heap')), fs.existsSync(made('.heap')))",
  },
  {
    name: 'report',
    category: 'files',
    source: "() => (process.report.writeReport(made('.report')), fs.existsSync(made('.report')))",
  },
  { name: 'environment', category: 'proc', source: '() => Object.keys(process.env).length > 0' },
  { name: 'gc of the runtime', category: 'eval', source: "() => typeof globalThis.gc === 'function'" },
  {
    name: 'signal the parent',
    category: 'kill and ptrace',
    needs: 'ffi',
    source: '() => sys([62, 129], T.pid, 0) === 0',
  },
  {
    name: 'be traced (ptrace)',
    category: 'kill and ptrace',
    needs: 'ffi',
    source: '() => sys([101, 117], 0, 0, 0, 0) === 0',
  },
  {
    name: 'open a handle on the parent (pidfd_open)',
    category: 'kill and ptrace',
    needs: 'ffi',
    source: '() => sys([434, 434], T.pid, 0) >= 0',
  },
  {
    name: 'read memory by process (process_vm_readv)',
    category: 'kill and ptrace',
    needs: 'ffi',
    source: '() => sys([310, 270], process.pid, vector(), 1, vector(), 1) === 8',
  },
  { name: 'TCP socket', category: 'net', needs: 'ffi', source: '() => sys([41, 198], 2, 1, 0) >= 0' },
  { name: 'UDP socket', category: 'net', needs: 'ffi', source: '() => sys([41, 198], 2, 2, 0) >= 0' },
  { name: 'netlink socket', category: 'net', needs: 'ffi', source: '() => sys([41, 198], 16, 3, 0) >= 0' },
  { name: 'unix socket', category: 'unix sockets', needs: 'ffi', source: '() => sys([41, 198], 1, 1, 0) >= 0' },
  {
    name: 'io_uring',
    category: 'kernel',
    needs: 'ffi',
    source: '() => sys([425, 425], 1, address(Buffer.alloc(120))) >= 0',
  },
  { name: 'unshare', category: 'kernel', needs: 'ffi', source: '() => sys([272, 97], 0x200) === 0' },
  { name: 'keyctl', category: 'kernel', needs: 'ffi', source: '() => sys([250, 219], 0, -3, 1) > 0' },
  {
    name: 'memfd_create',
    category: 'kernel',
    needs: 'ffi',
    source: "() => sys([319, 279], address(Buffer.from('x\\0')), 0) >= 0",
  },
  { name: 'inotify', category: 'kernel', needs: 'ffi', source: '() => sys([294, 26], 0) >= 0' },
  {
    name: 'System V shared memory',
    category: 'kernel',
    needs: 'ffi',
    source: '() => sys([29, 194], 0, 4096, 0o600) >= 0',
  },
  { name: 'message queue', category: 'kernel', needs: 'ffi', source: '() => sys([68, 186], 0, 0o600) >= 0' },
  { name: 'user fault handler', category: 'kernel', needs: 'ffi', source: '() => sys([323, 282], 1) >= 0' },
  {
    name: 'make a FIFO',
    category: 'files',
    needs: 'ffi',
    source: "() => sys([259, 33], -100, address(Buffer.from(made('.fifo') + '\\0')), 0o10666, 0) === 0",
  },
  {
    name: 'raise a limit',
    category: 'identity',
    needs: 'ffi',
    source: '() => sys([302, 261], 0, 7, address(Buffer.from(new BigUint64Array([70n, 70n]).buffer)), 0) === 0',
  },
  { name: 'dump memory (prctl)', category: 'identity', needs: 'ffi', source: '() => sys([157, 167], 4, 1) === 0' },
  { name: 'personality', category: 'identity', needs: 'ffi', source: '() => sys([135, 92], 0xffffffff) >= 0' },
  {
    name: 'load a library',
    category: 'dlopen',
    needs: 'ffi',
    source: "() => need('node:ffi').dlopen('libresolv.so.2', {}) && true",
  },
  { name: 'load an addon', category: 'dlopen', source: "() => loaded('libresolv.so.2')" },
]
