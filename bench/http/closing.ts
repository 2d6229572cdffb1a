// Closes what a benchmark has opened, the last first: at its end, or when a signal ends it (bench/run.ts).
import { print } from './terminal.ts'

const opened: (() => unknown)[] = []
let closing: Promise<void> | undefined

export const closeAtEnd = (close: () => unknown): void => void opened.push(close)

export const closeAll = (): Promise<void> => (closing ??= closeEach())

async function closeEach(): Promise<void> {
  for (const close of opened.reverse()) {
    try {
      await close()
    } catch (error) {
      print(`not closed: ${String(error)}`)
    }
  }
}
