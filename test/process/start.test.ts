// The process from outside: what a start prints and refuses, and how signals end it.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { testTemplate } from '../helpers/app.ts'
import { PATIENCE_MS } from '../helpers/patience.ts'

// Creating a database costs seconds of processor time, and other test files run at the same time.

const command = fileURLToPath(new URL('../../bin/pawl.mjs', import.meta.url))

interface Started {
  readonly child: ChildProcess
  /** Resolves with all of stdout once it contains the text; rejects when the process ends before. */
  readonly printed: (text: string) => Promise<string>
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>
}

const READY = 'Ready.'
const addressIn = (text: string): string => /pawl listens on (http:\/\/\S+)/.exec(text)?.[1] ?? ''

// What an earlier start leaves is made once and copied.
const template = mkdtempSync(join(tmpdir(), 'pawl-start-'))
let dataDir: string
let running: ChildProcess[] = []

beforeAll(async () => {
  dataDir = template
  seed()
  const { child, printed, ended } = start()
  await printed(READY)
  child.kill('SIGTERM')
  await ended
})

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'pawl-start-'))
})

afterEach(async () => {
  // What is killed may write for a moment more.
  await Promise.all(running.map(end))
  running = []
  rmSync(dataDir, { recursive: true, force: true })
})

afterAll(() => rmSync(template, { recursive: true, force: true }))

const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}

/** Most of a first start is the making of the database: this puts one there that is as new. */
const seed = (): void => cpSync(join(testTemplate(), 'data'), dataDir, { recursive: true })

/** Starts on a database that an earlier start has made. */
function startAgain(env: Record<string, string> = {}): Started {
  cpSync(template, dataDir, { recursive: true })
  return start(env)
}

function start(env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, [command], {
    env: { PATH: process.env['PATH'], PAWL_PORT: '0', PAWL_DATA_DIR: dataDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  const printed = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const check = () => stdout.includes(text) && resolve(stdout)
      child.stdout.on('data', check)
      child.once('close', () => reject(new Error(`ended before printing ${text}: ${stderr}`)))
      check()
    })
  return { child, printed, ended }
}

describe('start', () => {
  test('the first start prints address, data, a generated password that works, and the next command', async () => {
    const { printed } = start()
    const text = await printed(READY)
    const password = /Administrator: admin, password: (\S+) /.exec(text)?.[1]
    expect(text).toContain(`Data: ${dataDir}`)
    expect(text).toContain(`curl -w '\\n' -u 'admin:${password}'`)
    const credential = Buffer.from(`admin:${password}`).toString('base64')
    const reply = await fetch(`${addressIn(text)}/admin/application`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Basic ${credential}` },
      body: '{"id":"my-app"}',
    })
    expect(reply.status).toBe(200)
  })

  test('a first start that is killed while it makes the database is begun anew', async () => {
    const { child } = start()
    const files = () => readdirSync(dataDir, { recursive: true }).length
    await vi.waitFor(() => expect(files()).toBeGreaterThan(100), { timeout: PATIENCE_MS, interval: 2 })
    await end(child)
    expect(existsSync(join(dataDir, 'database')), 'no half of a database').toBe(false)
    await start().printed(READY)
  })

  test('the password of a first start that could not listen is shown by the start that serves', async () => {
    seed()
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as AddressInfo
    const failed = await start({ PAWL_PORT: String(port) }).ended
    expect(failed.code).toBe(1)
    // What was done before is in the log, and that is all.
    expect(failed.stdout.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":"info",'))).toEqual([])
    expect(failed.stdout).not.toContain('password')
    taken.close()
    const text = await start().printed(READY)
    const password = /Administrator: admin, password: (\S+) /.exec(text)?.[1]
    const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
    expect((await fetch(`${addressIn(text)}/admin/users`, { headers: { authorization } })).status).toBe(200)
  })

  test('a later start prints no password', async () => {
    expect(await startAgain().printed(READY)).not.toContain('password')
  })

  test('a configured password is not printed', async () => {
    seed()
    const text = await start({ PAWL_ADMIN_PASSWORD: 'a marked secret' }).printed(READY)
    expect(text).not.toContain('marked')
    expect(text).not.toContain('password')
  })

  test('the data directory and every file in it are closed to other users, whatever the umask', async () => {
    const before = process.umask(0)
    const made = join(dataDir, 'parent', 'data')
    const { printed } = start({ PAWL_DATA_DIR: made })
    process.umask(before)
    await printed(READY)
    const open = [made, ...readdirSync(made, { recursive: true, encoding: 'utf8' }).map((path) => join(made, path))].filter(
      (path) => (statSync(path).mode & 0o077) !== 0,
    )
    expect(open).toEqual([])
  })
})

describe('refused start', () => {
  test('every configuration problem has its line, and the exit status is 1', async () => {
    const { code, stderr, stdout } = await start({ PAWL_PORT: '1e3', PAWL_TYPO: '1', DATABASE_URL: 'postgres://u:p@h/d' }).ended
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^pawl cannot start: PAWL_TYPO: /),
      expect.stringMatching(/^pawl cannot start: PAWL_PORT: /),
      expect.stringMatching(/^pawl cannot start: PAWL_MASTER_KEY: /),
    ])
    expect(readdirSync(dataDir)).toEqual([])
  })

  test.each([0o755, 0o750, 0o701])('a data directory that other users may enter is said in one line (%o)', async (mode) => {
    chmodSync(dataDir, mode)
    const { code, stderr } = await start().ended
    expect(code).toBe(1)
    expect(stderr).toMatch(
      new RegExp(`^pawl cannot start: the data directory .* is open to other users \\(mode 0${mode.toString(8)}\\).*\n$`),
    )
    expect(readdirSync(dataDir)).toEqual([])
  })
})

describe('stop', () => {
  // SIGTERM alone ends servers in every other file, and twice in outage.test.ts.
  test('SIGINT, SIGHUP, and two signals, end the server with 0 and free the data directory', async () => {
    let next = startAgain()
    for (const signals of [['SIGINT'], ['SIGHUP'], ['SIGTERM', 'SIGINT']] as const) {
      const { child, printed, ended } = next
      await printed(READY)
      for (const signal of signals) child.kill(signal)
      expect((await ended).code, signals.join()).toBe(0)
      next = start()
    }
    await next.printed(READY)
  })

  test('a signal during the start ends the server with 0 once it has started', async () => {
    const { child, ended } = startAgain()
    await lockOf(dataDir)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })

  test('idle connections do not hold up the end, whatever part of a request they have sent', async () => {
    const { child, printed, ended } = startAgain({ PAWL_SHUTDOWN_TIMEOUT_SECONDS: '600' })
    const { port, hostname } = new URL(addressIn(await printed(READY)))
    const sockets = [
      '',
      'GET /health/ready HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET /health/ready HTTP/1.1\r\nHost: a\r\n',
      'POST /pa/v3/status HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{',
    ].map((bytes) => ({
      bytes,
      socket: connect(Number(port), hostname)
        .on('error', () => undefined)
        .resume(),
    }))
    await Promise.all(sockets.map(({ bytes, socket }) => new Promise<void>((resolve) => socket.write(bytes, () => resolve()))))
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
    for (const { socket } of sockets) socket.destroy()
  })
})

/** Waits until the starting server has taken its directory, which is long after it installed its signal handlers. */
async function lockOf(directory: string): Promise<void> {
  while (!readdirSync(directory).includes('pawl.lock')) await new Promise((resolve) => setImmediate(resolve))
}
