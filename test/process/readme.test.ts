// README.md as a newcomer follows it: every block in its order, on a fresh data directory, and the output that it shows.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test, vi } from 'vitest'
import { findQuietPort } from '../helpers/ports.ts'

// A start from nothing and several command lines, while other test files run.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'pawl-readme-'))
const children: ChildProcess[] = []
afterAll(async () => {
  for (const child of children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    const ended = new Promise((resolve) => child.once('close', resolve))
    // npm and what it started.
    process.kill(-(child.pid ?? 0), 'SIGTERM')
    await ended
  }
  rmSync(directory, { recursive: true, force: true })
})

interface Block {
  /** One command a line. */
  readonly commands: readonly string[]
  /** What README shows of the output; `…` stands for anything. */
  readonly shown: readonly string[]
}

/** Each block of commands together with the block of text behind it. */
function readBlocks(): Block[] {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  const fences = [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, kind, body = '']) => ({
    kind,
    lines: body.trimEnd().split('\n'),
  }))
  return fences.flatMap(({ kind, lines }, index) => {
    const next = fences[index + 1]
    return kind === 'sh' ? [{ commands: lines, shown: next?.kind === 'text' ? next.lines : [] }] : []
  })
}

/** Starts a command and collects what it prints; `isDone` ends the wait before the command ends. */
function run(command: string, env: Record<string, string>, isDone?: (printed: string) => boolean): Promise<string> {
  const child = spawn('bash', ['-c', command], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let printed = ''
  let faults = ''
  return new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
      if (isDone?.(printed)) resolve(printed)
    })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      faults += chunk
    })
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(printed)
      else reject(new Error(`${command}: ended with ${code}: ${printed}${faults}`))
    })
  })
}

/** Text as a pattern that matches it alone. */
const escape = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** The lines of README that are not in the output, in their order. */
function findMissing(shown: readonly string[], printed: string): string[] {
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

test('every block of README.md works in its order and prints what README.md shows', async () => {
  const url = `http://127.0.0.1:${await findQuietPort()}`
  const { PATH = '', HOME = '' } = process.env
  const ofDesk = { XDG_DATA_HOME: join(directory, 'desk'), XDG_CONFIG_HOME: join(directory, 'desk') }
  const env = { PATH, HOME, ...ofDesk, PAWL_PORT: new URL(url).port, PAWL_DATA_DIR: join(directory, 'data') }
  // What a reader reads off the screen and types, and what a shell remembers between two blocks.
  const placeholders: Record<string, string> = {}
  const assignments: string[] = []
  const here = (text: string): string => text.replaceAll('http://127.0.0.1:8080', url)
  const blocks = readBlocks()
  expect(blocks.flatMap(({ commands }) => commands).length).toBeGreaterThan(6)
  for (const { commands, shown } of blocks) {
    let printed = ''
    for (const line of commands) {
      const command = here(line).replaceAll(/THE-[A-Z-]+[A-Z]/g, (name) => placeholders[name] ?? name)
      expect(command, 'a placeholder is left').not.toMatch(/THE-[A-Z]/)
      const isServer = command === 'npm start'
      const isAssignment = /^\w+=/.test(command)
      const whole = [...assignments, command].join('\n')
      const output = await run(whole, env, isServer ? (text) => text.includes('Create an application:') : undefined)
      if (isAssignment) assignments.push(command)
      const [, password] = /^Administrator: \w+, password: (\S+)/m.exec(output) ?? []
      if (password !== undefined) placeholders['THE-PRINTED-PASSWORD'] = password
      const [, ofBank] = /"username":"bank".*"password":"([^"]+)"/.exec(output) ?? []
      if (ofBank !== undefined) placeholders['THE-PASSWORD-OF-BANK'] = ofBank
      const [, operationId] = /^\{"operationId":"([^"]+)"/m.exec(output) ?? []
      if (operationId !== undefined) placeholders['THE-OPERATION-ID'] = operationId
      printed += output
    }
    expect(findMissing(shown.map(here), printed), printed).toEqual([])
  }
})
