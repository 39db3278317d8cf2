import { unlike } from '../bench-server.ts'
import { type Group, timed } from '../run.ts'

const RUST = 5
const PYTHON = 2
const CACHED = 20

/** `POST /v1/tools`: of bytes that were never seen, and of bytes that are there. */
export const admission: Group = async ({ server, subjects }) => {
  const { wordcount, python } = subjects
  const uploads = async (component: Buffer, times: number, fresh: boolean): Promise<number[]> => {
    const samples: number[] = []
    for (let time = 0; time < times; time++) {
      const bytes = fresh ? unlike(component) : component
      samples.push(await timed(() => server.api.admit(bytes)))
    }
    return samples
  }
  await server.admit(wordcount)
  return {
    'admission-rust': await uploads(wordcount, RUST, true),
    ...(python === undefined ? {} : { 'admission-python': await uploads(python, PYTHON, true) }),
    'admission-cached': await uploads(wordcount, CACHED, false),
  }
}
