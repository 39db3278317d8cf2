import { type Command, InvalidArgumentError } from 'commander'
import type { ServerFlags, SessionCommands } from '../session.ts'
import { urlOption } from './url-option.ts'

const open = async (command: Command): Promise<SessionCommands> => {
  const { SessionCommands: Opened } = await import('../session.ts')
  return new Opened(process.env, command.optsWithGlobals<ServerFlags>())
}

function sequence(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new InvalidArgumentError('It must be a whole number of at least 0.')
}

/** `brain session …`: sessions of a running server. */
export function addSessionCommands(program: Command): void {
  const session = program
    .command('session')
    .description('use the sessions of a running server (token: BRAIN_API_TOKEN)')
    .addOption(urlOption())
    .option('--json', 'for programs: the answers of the server, a line of JSON each')

  session
    .command('create')
    .description('create a session and print its id')
    .argument('<json>', 'the body of the request: JSON, @FILE, or - for standard input')
    .action(async (body: string, _flags: object, command: Command) => (await open(command)).create(body))
  session
    .command('list')
    .description('list the sessions: id, status, last sequence')
    .action(async (_flags: object, command: Command) => (await open(command)).list())
  session
    .command('send')
    .description('send a message, wait for its turn to end, print what the model said last')
    .argument('<session>')
    .argument('<message>')
    .action(async (id: string, message: string, _flags: object, command: Command) =>
      (await open(command)).send(id, message),
    )
  session
    .command('events')
    .description('print the records of a session')
    .argument('<session>')
    .option('--after <sequence>', 'only those after this one', sequence, 0)
    .option('--follow', 'go on with those that are committed from now on, until the session ends', false)
    .action(async (id: string, flags: { after: number; follow: boolean }, command: Command) =>
      (await open(command)).events(id, flags),
    )
  session
    .command('call')
    .description('call a tool of a session and wait for its end')
    .argument('<session>')
    .argument('<tool>')
    .option('--input <json>', 'JSON, @FILE, or - for standard input; default {}')
    .option('--deadline <duration>', 'such as 5s')
    .action(async (id: string, tool: string, flags: { input?: string; deadline?: string }, command: Command) => {
      process.exitCode = await (await open(command)).call(id, tool, flags)
    })
  session
    .command('end')
    .description('end a session')
    .argument('<session>')
    .action(async (id: string, _flags: object, command: Command) => (await open(command)).end(id))
  addFileCommands(session)
}

type InFiles = [session: string, environment: string, path: string, flags: object, command: Command]

function addFileCommands(session: Command): void {
  const files = session.command('files').description('files of the workspace of an environment')
  files
    .command('list')
    .argument('<session>')
    .argument('<environment>')
    .argument('[prefix]', 'only paths that begin so', '')
    .action(async (...[id, environment, prefix, , command]: InFiles) =>
      (await open(command)).listFiles(id, environment, prefix),
    )
  files
    .command('get')
    .description('write a file to standard output')
    .argument('<session>')
    .argument('<environment>')
    .argument('<path>')
    .action(async (...[id, environment, path, , command]: InFiles) =>
      (await open(command)).getFile(id, environment, path),
    )
  files
    .command('put')
    .argument('<session>')
    .argument('<environment>')
    .argument('<path>')
    .argument('<source>', 'a file, or - for standard input')
    .action(async (...given: [id: string, environment: string, path: string, source: string, object, Command]) => {
      const [id, environment, path, source, , command] = given
      await (await open(command)).putFile(id, environment, { path, source })
    })
}
