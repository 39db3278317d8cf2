import { readFile } from 'node:fs/promises'
import { startServer } from './server.ts'

/**
 * Uploads a component to a server of its own and calls it, as somebody would who was given the file.
 * @returns what it finished with
 */
export async function uploadAndCall(component: string, input: unknown): Promise<unknown> {
  await using server = await startServer()
  const session = await server.sessionWith(await readFile(component))
  return await session.value(input)
}
