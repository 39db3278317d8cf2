/** What the build takes from the development package: one version, one list of dependencies. */
export type RootManifest = {
  readonly version: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
}

export type PackageManifest = Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string }

const entry = (module: string): object => ({ types: `./lib/sdk/${module}.d.ts`, default: `./lib/sdk/${module}.js` })

/** `@aexhq/brain`: what clients and authors need; Node 22 and browsers. */
export const clientManifest = ({ version, license, dependencies }: RootManifest): PackageManifest => ({
  name: '@aexhq/brain',
  version,
  description:
    'Client of Brain, a host for tools that nobody should have to trust: tools, sessions, and the contracts of components',
  license,
  type: 'module',
  exports: {
    '.': entry('index'),
    './agentloop': entry('agentloop/define-agentloop'),
    './component': entry('component'),
    './environments': entry('environments'),
    './http': entry('http'),
    './http/handler': entry('http-handler'),
    './http/server': entry('http-server'),
    './interop': entry('interop'),
    './package': entry('package/package-tools'),
    './runtime': entry('runtime'),
    './contracts/session.json': './contracts/session.json',
    './contracts/host-config.json': './contracts/host-config.json',
    './contracts/tool.wit': './contracts/tool.wit',
    './contracts/agentloop.wit': './contracts/agentloop.wit',
    './package.json': './package.json',
  },
  bin: {
    'brain-tools': './lib/sdk/package/brain-tools.js',
    'brain-tool-runtime': './lib/sdk/runtime/brain-tool-runtime.js',
  },
  files: ['lib', 'contracts'],
  // The entry for components makes their globals.
  sideEffects: ['./lib/sdk/component.js'],
  engines: { node: '>=22.3' },
  dependencies: { zod: dependencies['zod'] },
})

/** `@aexhq/brain-server`: the server, with its command `brain`. */
export const serverManifest = ({ version, license, dependencies }: RootManifest): PackageManifest => ({
  name: '@aexhq/brain-server',
  version,
  description: 'Brain, a host for tools that nobody should have to trust: the server and its command',
  license,
  type: 'module',
  bin: { brain: './bin/brain.js' },
  exports: { './package.json': './package.json', './host-config.json': './host-config.json' },
  files: ['bin', 'host-config.json', 'lib', 'wit', 'THIRD-PARTY-LICENSES.txt'],
  engines: { node: '>=26.10' },
  dependencies,
})
