import { RemoteCall } from '../remote-call.ts'

/** One call that an application was given over its stream of commands. */
export class HostCall extends RemoteCall {
  #connection: number | undefined

  /** The connection that it was handed to; undefined while it waits. */
  get connection(): number | undefined {
    return this.#connection
  }

  sentOn(connection: number): void {
    this.#connection = connection
  }
}
