import type { AuthorPackages } from './author-packages.ts'
import { JAVASCRIPT_WORLD } from './javascript-world.ts'

/**
 * A component of QuickJS with room for a script, which it evaluates when it is called. Making it takes most of the time of
 * a build, and it is the same for every tool: a quick build copies it and writes the script into its memory image.
 */
export type RoomyComponent = {
  readonly bytes: Uint8Array
  /** Where the room lies, and how large it is. */
  readonly at: number
  readonly room: number
}

/** What the room is full of while it is looked for. */
const MARK = 'brain:room;'
const LEAST_ROOM = 256 * 1024

/** What a module asks for by `require`, once esbuild made CommonJS of it. */
const PROVIDED = ['brain:tool/host', 'wasi:clocks/monotonic-clock', 'wasi:random/random']

/** A failure at the top of a module is told as one of the call: nothing has loaded the module in a component before. */
const loader = (room: number): string => `
${PROVIDED.map((name, index) => `import * as provided${index} from ${JSON.stringify(name)}`).join('\n')}
const provided = { ${PROVIDED.map((name, index) => `${JSON.stringify(name)}: provided${index}`).join(', ')} }
const script = ${JSON.stringify(MARK)}.repeat(${room / MARK.length})
const load = () => {
  const module = { exports: {} }
  new Function('module', 'exports', 'require', script)(module, module.exports, (name) => provided[name])
  return module.exports.run
}
export const run = (invocation) => {
  let loaded
  try {
    loaded = load()
  } catch (error) {
    const message = 'Cannot load the tool in a component: ' + (error instanceof Error ? error.message : String(error))
    provided['brain:tool/host'].finish(JSON.stringify({ status: 'error', error: { code: 'tool_error', message } }))
    return ''
  }
  return loaded(invocation)
}`

/**
 * Makes one with room for a script and for what is added to it next.
 *
 * @param world folder of the world of components in JavaScript
 * @throws Error when its memory is laid out in an unknown way
 */
export async function makeRoomy(packages: AuthorPackages, world: string, script: string): Promise<RoomyComponent> {
  const wanted = Math.max(LEAST_ROOM, script.length * 2)
  const room = wanted - (wanted % MARK.length)
  const { component: bytes } = await packages.qjs.componentize({
    witPath: world,
    world: JAVASCRIPT_WORLD,
    jsSource: loader(room),
    sync: true,
    optSize: true,
  })
  const marks = MARK.repeat(room / MARK.length)
  const at = bytes.indexOf(marks)
  if (at < 0 || bytes.includes(marks, at + 1))
    throw new Error('componentize-qjs lays memory out in an unknown way: adapt roomy-component.ts to it')
  return { bytes, at, room }
}

/** Whether it takes the script. */
export const hasRoomFor = ({ room }: RoomyComponent, script: string): boolean => script.length <= room

/** The component with a script, of ASCII alone, that sets `module.exports.run`. */
export function withScript({ bytes, at, room }: RoomyComponent, script: string): Uint8Array {
  const filled = Buffer.from(bytes)
  filled.fill(' ', at, at + room)
  filled.write(script, at, 'latin1')
  return filled
}
