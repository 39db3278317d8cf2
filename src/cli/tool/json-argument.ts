import { open } from 'node:fs/promises'
import { BrainError, messageOf } from '../../kernel/errors.ts'
import { type Json, parseJson } from '../../kernel/json.ts'

/** As much as a server takes of one request by default. */
const MOST_BYTES = 32 * 1024 * 1024

/**
 * JSON as it stands on a command line: the text itself, `@FILE`, or `-` for standard input.
 * @param what names the argument in errors, for example `--input`
 * @throws BrainError `invalid_request` for what cannot be read or is no JSON
 */
export async function jsonArgument(text: string, what: string): Promise<Json> {
  if (text === '-') return parseJson(await readStandardInput(what), 'standard input')
  if (!text.startsWith('@')) return parseJson(text, what)
  const file = text.slice(1)
  return parseJson((await readBounded(file, what)).toString('utf8'), `${what} ${JSON.stringify(file)}`)
}

/** @throws BrainError `invalid_request` when there is no such file, or more of it than `mostBytes` */
export async function readBounded(file: string, what: string, mostBytes = MOST_BYTES): Promise<Buffer> {
  const fail = (reason: string, cause?: unknown): never => {
    throw new BrainError('invalid_request', `Cannot read ${what} ${JSON.stringify(file)}: ${reason}`, { cause })
  }
  const handle = await open(file, 'r').catch((cause: unknown) => fail(messageOf(cause), cause))
  try {
    const facts = await handle.stat()
    if (!facts.isFile()) fail('it is not a file')
    if (facts.size > mostBytes) fail(`it has ${facts.size} bytes, at most ${mostBytes} are taken`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

async function readStandardInput(what: string): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    const bytes = chunk as Buffer
    size += bytes.length
    if (size > MOST_BYTES)
      throw new BrainError('invalid_request', `Cannot read ${what}: standard input has more than ${MOST_BYTES} bytes`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString('utf8')
}
