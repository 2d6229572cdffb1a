// Reads and writes at the terminal for all benchmarks: the option --works, and lines of results.

/** Makes the test of a name by the words of --works, which commas separate: whether it has one of them. Without words every name passes. */
export function readWorks(words: string): (name: string) => boolean {
  const wanted = words.split(',').filter(Boolean)
  return (name) => wanted.length === 0 || wanted.some((word) => name.includes(word))
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`)
