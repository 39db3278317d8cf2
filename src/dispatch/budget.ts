import { BrainError } from '../kernel/errors.ts'
import { describeLimit, LIMITS, type Limits } from '../contract/limits.ts'

/**
 * What one activation may use, together with every tool that it dispatched, also later (contract 3.4). A direct call
 * has one of its own (A11). Never renewed.
 */
export class Budget {
  readonly #limits: Limits
  #emittedBytes = 0
  #recordedBytes = 0
  #modelCalls = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** For a call whose results are bounded by something else, and which asks no model: nothing of it is counted. */
  withoutEmissions(): Budget {
    return new Budget({ ...this.#limits, emittedBytes: 0 })
  }

  /**
   * Charges an emission and writes it; one that could not be written is not paid for.
   *
   * @param instead is written, for nothing, when there is no room
   * @throws BrainError `emit_limit`, before anything is written, without `instead`; what `write` throws
   */
  async emit<Written>(
    bytes: number,
    write: () => Promise<Written>,
    instead?: () => Promise<Written>,
  ): Promise<Written> {
    if (instead !== undefined && !this.#hasRoom(bytes)) return instead()
    this.#chargeEmission(bytes)
    try {
      return await write()
    } catch (error) {
      this.#emittedBytes -= bytes
      throw error
    }
  }

  #hasRoom(bytes: number): boolean {
    const most = this.#limits.emittedBytes
    return most === 0 || this.#emittedBytes + bytes <= most
  }

  #chargeEmission(bytes: number): void {
    const most = this.#limits.emittedBytes
    if (!this.#hasRoom(bytes))
      throw new BrainError(
        'emit_limit',
        `Cannot emit ${bytes} bytes: events and results of this activation may take ${most} bytes together (${LIMITS.emittedBytes.variable}), ${this.#emittedBytes} are used`,
      )
    this.#emittedBytes += bytes
  }

  /**
   * What a loop has recorded beside its emissions: transcript, requests, calls, kv.
   * @throws BrainError `output_limit`; nothing is charged then.
   */
  chargeRecord(bytes: number): void {
    const most = this.#limits.activationBytes
    if (most > 0 && this.#recordedBytes + bytes > most)
      throw new BrainError(
        'output_limit',
        `Cannot record ${bytes} bytes more: this activation may record ${describeLimit('activationBytes', this.#limits)}, ${this.#recordedBytes} are used`,
      )
    this.#recordedBytes += bytes
  }

  /** @throws BrainError `model_call_limit` */
  chargeModelCall(): void {
    const most = this.#limits.modelCalls
    if (most > 0 && this.#modelCalls >= most)
      throw new BrainError(
        'model_call_limit',
        `Cannot call the model: this activation has made its ${most} calls (${LIMITS.modelCalls.variable})`,
      )
    this.#modelCalls++
  }
}
