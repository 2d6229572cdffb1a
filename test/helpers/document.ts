// Follows a document as its reader does: types its blocks of commands in their order, reads values off their output, and compares the output
// with the document.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

export interface Block {
  /** One command a line. */
  readonly commands: readonly string[]
  /** The lines of output that the document shows; `…` stands for anything. */
  readonly shown: readonly string[]
  /** Whether the server is stopped before the block, marked as ```sh stopped. */
  readonly needsStop: boolean
}

/** Patterns of values that a reader reads off the screen and types later, by their placeholder in the documents. */
export const READ_OFF: Readonly<Record<string, RegExp>> = {
  'THE-PRINTED-PASSWORD': /^Administrator: \w+, password: (\S+)/m,
  'THE-PASSWORD-OF-BANK': /^username +bank\n(?:.+\n)*?password +(\S+)/m,
  'THE-PASSWORD-OF-BACK-END': /^username +back-end\n(?:.+\n)*?password +(\S+)/m,
  'THE-PASSWORD-OF-PROMETHEUS': /^username +prometheus\n(?:.+\n)*?password +(\S+)/m,
  'THE-ACTIVATION-CODE': /"activationQrCodeData": ?"([^"]+)"/,
  'THE-OPERATION-ID': /^\{"operationId":"([^"]+)"/m,
  'THE-QR-TEXT': /"operationQrCodeData":"([^"]+)"/,
  'THE-NONCE': /"nonce":"([^"]+)"/,
  'THE-OTP': /^(\d{8}-\d{8})$/m,
  'THE-SECRET': /^secret +(whsec_\S+)/m,
  'THE-WEBHOOK-ID': /^id +(\S+)\n(?:.+\n)*?secret +whsec_/m,
  'THE-HEAD': /^ *head (application:my-app=\d+:\w+)/m,
}

/** A line of assignments without a command, like `NAME=value OTHER='a value'`. */
const ASSIGNMENT = /^(?:export )?(?:\w+=(?:'[^']*'|\S*)(?: |$))+$/

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Each block of commands of a document together with the block of text behind it. */
export function readBlocks(path: string): readonly Block[] {
  const fences = [...readFileSync(join(root, path), 'utf8').matchAll(/^```(\w+)( stopped)?\n([^]*?)^```$/gm)].map(
    ([, kind, stopped, body = '']) => ({ kind, needsStop: stopped !== undefined, lines: body.trimEnd().split('\n') }),
  )
  return fences.flatMap(({ kind, needsStop, lines }, index) => {
    const next = fences[index + 1]
    return kind === 'sh' ? [{ commands: lines, shown: next?.kind === 'text' ? next.lines : [], needsStop }] : []
  })
}

export interface Reader {
  /** Carries out every block of a document, and expects the shown output. Returns the number of typed commands. */
  readonly follow: (path: string, only?: (block: Block, index: number) => boolean) => Promise<number>
  /** The output so far of commands that keep running. */
  readonly running: () => string
  /** Ends the commands that still run. */
  readonly close: () => Promise<void>
}

export interface Desk {
  readonly env: Readonly<Record<string, string>>
  /** Texts of the documents and the texts to type in their place: the addresses of this machine. */
  readonly typed: ReadonlyMap<string, string>
}

/** Makes a reader at a terminal with this environment, who remembers the values of one document in the next. */
export function openReader({ env, typed }: Desk): Reader {
  const known = new Map<string, string>()
  // Assignments that a shell keeps from one line to the next.
  const assignments: string[] = []
  const servers: Typed[] = []
  const here = (text: string): string => [...typed].reduce((said, [from, to]) => said.replaceAll(from, to), text)

  async function type(line: string): Promise<string> {
    const command = here(line).replaceAll(/THE-[A-Z-]+[A-Z]/g, (name) => known.get(name) ?? name)
    expect(command, 'a placeholder is left').not.toMatch(/THE-[A-Z]/)
    const whole = [...assignments, command].join('\n')
    if (ASSIGNMENT.test(command)) assignments.push(command)
    const [, ready] = READY.find(([begins]) => line === begins || line.startsWith(`${begins} --`)) ?? []
    const started = ready === undefined ? undefined : await start(whole, env, ready)
    if (started !== undefined) servers.push(started)
    // At the question for a password, the reader types the one that the start printed.
    const answer = command.endsWith(' login') ? (known.get('THE-PRINTED-PASSWORD') ?? '') : ''
    const printed = started === undefined ? await run(whole, env, answer) : started.printed()
    for (const [name, pattern] of Object.entries(READ_OFF)) {
      const [, value] = pattern.exec(printed) ?? []
      if (value !== undefined) known.set(name, value)
    }
    return printed
  }

  async function stop(): Promise<void> {
    for (const one of servers.splice(0).toReversed()) await one.end()
  }

  return {
    follow: async (path, only = () => true) => {
      let count = 0
      for (const block of readBlocks(path).filter(only)) {
        if (block.needsStop) await stop()
        let printed = ''
        for (const line of block.commands) printed += await type(line)
        expect(findMissing(block.shown.map(here), printed), printed).toEqual([])
        count += block.commands.length
      }
      return count
    },
    running: () => servers.map(({ printed }) => printed()).join(''),
    close: stop,
  }
}

/** Commands that keep running, and the text that they print when they serve. */
const READY: readonly (readonly [string, string])[] = [
  ['npm start', 'Ready.'],
  ['npm run example:bank', 'It asks pawl at'],
  ['PAWL_WEBHOOK_ALLOW_HTTP=true PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES=true npm start', 'Ready.'],
  ["node examples/webhook/receiver.mjs 8092 'THE-SECRET'", 'The receiver listens'],
]

interface Typed {
  readonly printed: () => string
  readonly end: () => Promise<void>
}

/** Types a command that keeps running, in a second terminal, and waits until it serves. */
async function start(command: string, env: Desk['env'], ready: string): Promise<Typed> {
  const child = spawnShell(command, env)
  const output = collect(child)
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', () => {
      if (output().includes(ready)) resolve()
    })
    child.once('close', (code) => reject(new Error(`${command}: ended with ${code}: ${output()}`)))
  })
  return {
    printed: output,
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('close', resolve))
      // Ctrl+C reaches npm and the processes that it started.
      process.kill(-(child.pid ?? 0), 'SIGINT')
      await ended
    },
  }
}

/** Types a command that ends. */
function run(command: string, env: Desk['env'], answer: string): Promise<string> {
  const child = spawnShell(command, env)
  const output = collect(child)
  // A command that asks nothing may have ended before.
  child.stdin?.on('error', () => undefined).end(answer)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => (code === 0 ? resolve(output()) : reject(new Error(`${command}: ${code}: ${output()}`))))
  })
}

/**
 * Starts a shell with the umask of a terminal. An embedded database has set the umask of this process so that others cannot read new files; with
 * it, npx would make bin/pawl.mjs unreadable for others.
 */
const spawnShell = (command: string, env: Desk['env']): ChildProcess =>
  spawn('bash', ['-c', `umask 022\n${command}`], { cwd: root, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })

/** Collects the output of both streams together, as a terminal shows it. */
function collect(child: ChildProcess): () => string {
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
    })
  return () => printed
}

/** Text as a pattern that matches it alone. */
const escape = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** The lines of the document that are not in the output, in their order. */
export function findMissing(shown: readonly string[], printed: string): string[] {
  const lines = printed.split('\n')
  let from = 0
  return shown.filter((line) => {
    if (line === '…') return false
    const pattern = new RegExp(`^${line.split('…').map(escape).join('.*')}$`)
    const found = lines.findIndex((actual, index) => index >= from && pattern.test(actual))
    if (found >= 0) from = found + 1
    return found < 0
  })
}
