import { relative } from 'node:path'
import { newProject, TEMPLATES, type Template } from '../authoring/new-project.ts'
import { explainFailure } from './explain-failure.ts'

export type NewCommandOptions = { readonly packages?: string | undefined; readonly json?: boolean | undefined }

/** What people call the languages. */
const LANGUAGES: Readonly<Record<string, Template>> = {
  rust: 'rust',
  rs: 'rust',
  python: 'python',
  py: 'python',
  typescript: 'typescript',
  ts: 'typescript',
}

/** What comes next, in the new folder. */
const NEXT: Readonly<Record<Template, readonly string[]>> = {
  rust: ['cargo test', 'brain build .', 'brain test dist/SNAKE.wasm cases.json'],
  python: [
    'python3 -m venv .venv && . .venv/bin/activate && pip install -r requirements.txt',
    'python -m unittest',
    'brain build tool.py',
    'brain test dist/NAME.wasm',
  ],
  typescript: ['npm install', 'npm test', 'brain build tool.ts', 'brain test dist/NAME.wasm'],
}

/**
 * `brain new`: a project with one tool.
 *
 * @param version of the packages that it depends on
 * @returns the exit code: 0 made, 1 not made
 */
export async function printNew(
  language: string,
  name: string,
  { packages, json = false }: NewCommandOptions,
  version: string,
): Promise<number> {
  try {
    const template = LANGUAGES[language.toLowerCase()]
    if (template === undefined)
      throw new Error(
        `Cannot make a project in ${JSON.stringify(language)}: choose ${TEMPLATES.join(', ').replace('typescript', 'ts')}`,
      )
    const { directory, files, unbuilt } = await newProject(template, name, {
      directory: process.cwd(),
      version,
      packages,
    })
    const where = relative(process.cwd(), directory)
    const before = unbuilt === undefined ? [] : [`(cd ${unbuilt} && npm run build)`]
    const next = [
      ...before,
      `cd ${where}`,
      ...NEXT[template].map((line) =>
        line.replace('NAME', name).replace('SNAKE', name.replaceAll('-', '_').toLowerCase()),
      ),
    ]
    process.stdout.write(
      json
        ? `${JSON.stringify({ directory, files, next }, null, 2)}\n`
        : `made ${where}: ${files.join(', ')}\n\nnext:\n${next.map((line) => `  ${line}\n`).join('')}`,
    )
    return 0
  } catch (error) {
    process.stderr.write(`${explainFailure(error)}\n`)
    return 1
  }
}
