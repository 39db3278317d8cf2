/** Whether `work` is done, well or badly, within `ms` milliseconds. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, ms, false)))
  const done = work.then(
    () => true,
    () => true,
  )
  return Promise.race([done, late]).finally(() => clearTimeout(timer))
}
