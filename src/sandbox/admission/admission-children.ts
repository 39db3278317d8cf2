import { Generator, type TranspileSettings } from './transpile.ts'
import { ScriptCheck } from './script-check.ts'

/**
 * The children of the next admission, started and loaded before there is one where somebody asked for that: starting them
 * takes half as long as an admission. Each serves one upload all the same.
 */
export class AdmissionChildren {
  #generator: Generator | undefined
  #check: ScriptCheck | undefined

  /** Starts what is not there. Most uploads are small. */
  prepare(settings: TranspileSettings): void {
    if (this.#generator?.suits(0) !== true) this.#generator = new Generator(settings)
    if (this.#check?.isThere !== true) this.#check = new ScriptCheck(settings)
  }

  /** A generator for an upload of a size, for the caller alone, who uses it at once. */
  takeGenerator(settings: TranspileSettings, bytes: number): Generator {
    const prepared = this.#generator
    if (prepared?.suits(bytes) !== true) return Generator.for(bytes, settings)
    this.#generator = undefined
    return prepared
  }

  /** A check, for the caller alone, who closes it. */
  takeCheck(settings: TranspileSettings): ScriptCheck {
    const prepared = this.#check
    this.#check = undefined
    return prepared?.isThere === true ? prepared : new ScriptCheck(settings)
  }
}
