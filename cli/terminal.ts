// Opens the terminal of this process: environment, output, and questions to the user.
import { fstatSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { Writable } from 'node:stream'
import type { Terminal } from './command.ts'
import { explainFault, Fault } from './fault.ts'
import { decodeUtf8 } from './json-argument.ts'

export function openTerminal(): Terminal {
  // A failed write to stderr must not end the process: the exit code still reports the fault.
  process.stderr.on('error', () => undefined)
  return {
    env: process.env,
    columns: process.stdout.isTTY ? (process.stdout.columns ?? 0) : undefined,
    ...openOutput(process.stdout),
    note: (line) => void process.stderr.write(`${line}\n`),
    askSecret,
    readInput: async () => decodeUtf8('stdin', await buffer(process.stdin)),
    interruption,
  }
}

function interruption(): AbortSignal {
  const controller = new AbortController()
  const names = ['SIGINT', 'SIGTERM'] as const
  const interrupt = (name: NodeJS.Signals): void => {
    controller.abort(new Fault('refused', `${name} came`))
    // A signal comes twice when a wrapper passes on one that the terminal has sent to both processes.
    setTimeout(() => {
      for (const one of names) process.off(one, interrupt)
    }, TWICE_MS).unref()
  }
  for (const name of names) process.on(name, interrupt)
  return controller.signal
}

const TWICE_MS = 1_000

function openOutput(stream: NodeJS.WriteStream & { readonly fd: 1 }): Pick<Terminal, 'write' | 'print'> {
  let failure: NodeJS.ErrnoException | undefined
  let taken = Promise.resolve()
  const fail = (error: Error | null | undefined): void => {
    failure ??= error ?? undefined
  }
  stream.on('error', fail)
  const kind = fstatSync(stream.fd)
  const isStream = stream.isTTY || kind.isFIFO() || kind.isSocket()
  const write = (output: string): void => {
    if (output === '') return
    if (isStream) {
      taken = new Promise((resolve) => {
        stream.write(output, (error) => {
          fail(error)
          resolve()
        })
      })
      return
    }
    // A disk that gets full takes only a part, and the stream would not check how much.
    try {
      writeFileSync(stream.fd, Buffer.from(output))
    } catch (error) {
      fail(error as Error)
    }
  }
  return {
    write,
    print: async (output) => {
      write(output)
      await taken
      if (failure === undefined) return true
      // In `pawl … | head`, the end of the reader is no fault.
      if (failure.code === 'EPIPE') return false
      throw new Fault('output', `the output cannot be written: ${explainFault(failure)}`)
    },
  }
}

async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY) return undefined
  // Typed characters are not shown.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  // Asked once the terminal shows nothing any more: it would show an answer that comes at once, and take Ctrl-D for the end of a line.
  process.stderr.write(question)
  try {
    return await new Promise<string>((resolve) => {
      lines.once('line', resolve)
      // Ctrl-D counts as an empty answer.
      lines.once('close', () => resolve(''))
      // Ctrl-C arrives as a character here, so this sends the signal that ends the process.
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
