let isRunning = false

/** Whether the module is being loaded, while the component is built: what it makes then is the same in every call. */
export const isLoading = (): boolean => !isRunning

/** A call has begun. */
export const startCall = (): void => void (isRunning = true)
