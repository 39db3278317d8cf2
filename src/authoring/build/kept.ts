/** Something that is made when it is first asked for, and stays; what failed is tried anew. */
export class Kept<T> {
  #made: Promise<T> | undefined

  /** @param suits whether what is there is still good enough; default: it is */
  async get(make: () => Promise<T>, suits: (made: T) => boolean = () => true): Promise<T> {
    const made = await this.#made?.catch(() => undefined)
    if (made !== undefined && suits(made)) return made
    return await (this.#made = make())
  }
}
