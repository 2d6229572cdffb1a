// The terminal of this process: environment, output, and questions to the person in front of it.
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { Writable } from 'node:stream'
import type { Terminal } from './command.ts'

/** What commands see of this process. */
export const openTerminal = (): Terminal => ({
  env: process.env,
  write: (output) => void process.stdout.write(output),
  note: (line) => void process.stderr.write(`${line}\n`),
  askSecret,
  readInput: () => text(process.stdin),
})

async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY) return undefined
  process.stderr.write(question)
  // What is typed goes nowhere.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  try {
    return await new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(undefined))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
