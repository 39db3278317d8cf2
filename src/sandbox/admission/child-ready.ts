/** The type of the frame by which every child of admission says that it runs; the other types are its own. */
export const READY = 1
