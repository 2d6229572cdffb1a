// The output of a command to a full disk, to a reader that leaves, and of a list without end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createInstallation, endEverything, runNode } from '../helpers/process.ts'

// Each starts processes, and other test files run at the same time.

const PAGES = 120
const PAGE_ROWS = 1_000
/** A page is 2 MB, all of them are 240. */
const PADDING = 'x'.repeat(1_900)

const directory = mkdtempSync(join(tmpdir(), 'pawl-output-'))
let server: Server
let url = ''
let asked = 0
/** The page that is answered with 503. */
let broken = -1
beforeAll(async () => {
  // What answers is as large as no test can make a database in its time; lists of a server of pawl are in lists.test.ts.
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    response.setHeader('content-type', 'application/json')
    if (!pathname.endsWith('/operations')) {
      response.end('{"applications":[{"id":"one","isDefault":true}],"users":[]}')
      return
    }
    asked += 1
    const page = Number(searchParams.get('cursor') ?? '0')
    if (page === broken) response.statusCode = 503
    const operations = Array.from({ length: PAGE_ROWS }, (_, i) => ({ operationId: page * PAGE_ROWS + i, data: PADDING }))
    response.end(JSON.stringify({ operations, ...(page + 1 < PAGES && { nextCursor: String(page + 1) }) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  asked = 0
  broken = -1
})
afterAll(async () => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
  await endEverything()
})

const environment = () => ({
  PATH: process.env['PATH'] ?? '',
  HOME: directory,
  PAWL_URL: url,
  PAWL_ADMIN: 'admin:a password',
  PAWL_DATA_DIR: join(directory, 'none'),
})
const start = (args: readonly string[], stdio: readonly ('pipe' | 'ignore' | number)[], node: readonly string[] = []) =>
  spawn(process.execPath, [...node, 'bin/pawl.mjs', ...args], { stdio: ['ignore', ...stdio], env: environment() })

/** Runs `pawl` with its output, or another one of the two, to a device that is always full. */
async function runFull(args: readonly string[], which: 'stdout' | 'stderr' | 'both' = 'stdout') {
  const full = openSync('/dev/full', 'w')
  const child = start(args, [which === 'stderr' ? 'pipe' : full, which === 'stdout' ? 'pipe' : full])
  closeSync(full)
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout ? text(child.stdout) : '',
    child.stderr ? text(child.stderr) : '',
    once(child, 'exit'),
  ])
  return { code: code as number | null, stdout, stderr }
}

/** Runs `pawl` and reads nothing of it. */
async function runUnread(args: readonly string[]) {
  const child = start(args, ['pipe', 'pipe'])
  child.stdout?.destroy()
  const [stderr, [code]] = await Promise.all([child.stderr ? text(child.stderr) : '', once(child, 'exit')])
  return { code: code as number | null, stderr }
}

const SAYING: readonly string[] = [
  '--help',
  'app list',
  'user list --json',
  'operation list',
  'operation list --all',
  'key create',
  'completion bash',
]

describe('an output that is full', () => {
  test.each([...SAYING, 'operation list --all --json'])('pawl %s says so in one line, and ends with 6', async (line) => {
    const { code, stderr } = await runFull(line.split(' '))
    expect({ code, lines: stderr.split('\n').length }).toEqual({
      code: 6,
      lines: line.startsWith('operation list') && !line.includes('--all') ? 3 : 2,
    })
    expect(stderr).toContain('the output cannot be written: ENOSPC: no space left on device')
    expect(stderr).not.toContain('    at ')
    expect(asked).toBeLessThanOrEqual(1)
  })

  test('with --json the line is JSON', async () => {
    const { stderr } = await runFull(['app', 'list', '--json'])
    expect(JSON.parse(stderr)).toEqual({ error: expect.stringContaining('ENOSPC') as unknown, exitCode: 6 })
  })

  test('of commands on the database itself is told too, and the database is closed', async () => {
    const installation = await createInstallation('embedded')
    expect((await runNode(['bin/pawl.mjs', 'migrate'], installation.env)).code).toBe(0)
    for (const line of ['admin dump', 'template export --local', 'key check', 'audit export', 'key list', 'user export alice']) {
      const full = openSync('/dev/full', 'w')
      const child = spawn(process.execPath, ['bin/pawl.mjs', ...line.split(' ')], {
        stdio: ['ignore', full, 'pipe'],
        env: { ...environment(), ...installation.env },
      })
      closeSync(full)
      const [stderr, [code]] = await Promise.all([child.stderr ? text(child.stderr) : '', once(child, 'exit')])
      expect({ line, code, stderr }).toEqual({
        line,
        code: 6,
        stderr: expect.stringMatching(/^the output cannot be written: ENOSPC.*\n$/) as unknown,
      })
    }
  })

  test('a disk that takes a part of it is no disk that took it', async () => {
    const file = join(directory, 'part.sh')
    // The kernel takes the first kilobyte.
    const child = spawn('sh', ['-c', `ulimit -f 1; exec '${process.execPath}' bin/pawl.mjs completion bash >'${file}'`], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment(),
    })
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect({ code, stderr }).toEqual({
      code: 6,
      stderr: expect.stringMatching(/^the output cannot be written: EFBIG.*\n$/) as unknown,
    })
    expect(statSync(file).size).toBeGreaterThan(0)
  })

  test.each(['nonsense', 'app list --unknown', 'key create --json'])(
    'for what pawl %s says on stderr changes nothing of its exit code',
    async (line) => {
      const usual = await runNode(['bin/pawl.mjs', ...line.split(' ')], environment())
      const { code, stdout } = await runFull(line.split(' '), 'stderr')
      expect({ code, isSaid: stdout !== '' }).toEqual({ code: usual.code, isSaid: usual.stdout !== '' })
      expect((await runFull(line.split(' '), 'both')).code).toBe(line.startsWith('key') ? 6 : usual.code)
    },
  )
})

describe('a reader that has gone', () => {
  test.each(SAYING)('is no fault of pawl %s', async (line) => {
    const { code, stderr } = await runUnread(line.split(' '))
    expect({ code, stderr: stderr.replace(/^there are more: .*\n$/, '') }).toEqual({ code: 0, stderr: '' })
    // What nobody reads is not asked for.
    expect(asked).toBeLessThanOrEqual(2)
  })

  test('ends a list without end after its first lines', async () => {
    const child = start(['operation', 'list', '--all'], ['pipe', 'pipe'])
    const ended = once(child, 'exit')
    const lines: string[] = []
    if (child.stdout === null || child.stderr === null) throw new TypeError('no pipes')
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line)
      if (lines.length === 5) break
    }
    child.stdout.destroy()
    const [stderr, [code]] = await Promise.all([text(child.stderr), ended])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(lines.map((line) => (JSON.parse(line) as { operationId: number }).operationId)).toEqual([0, 1, 2, 3, 4])
    expect(asked).toBeLessThan(10)
  })

  test.each(['>&-', '2>&-', '>&- 2>&-', '<&- >&- 2>&-'])(
    'with its descriptors closed by %s a command ends as ever',
    async (closed) => {
      for (const [line, code] of [
        ['app list', 0],
        ['nonsense', 2],
      ] as const) {
        const child = spawn('sh', ['-c', `exec '${process.execPath}' bin/pawl.mjs ${line} ${closed}`], {
          stdio: ['ignore', 'ignore', 'ignore'],
          env: environment(),
        })
        expect(await once(child, 'exit')).toEqual([code, null])
      }
    },
  )
})

test('a list of 240 MB goes through a process that may have 40', async () => {
  const child = start(['operation', 'list', '--all'], ['pipe', 'pipe'], ['--max-old-space-size=40'])
  const ended = once(child, 'exit')
  if (child.stdout === null || child.stderr === null) throw new TypeError('no pipes')
  const stderr = text(child.stderr)
  let lines = 0
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) {
    lines += 1
    last = line
  }
  expect({ ended: await ended, stderr: await stderr, lines, asked }).toEqual({
    ended: [0, null],
    stderr: '',
    lines: PAGES * PAGE_ROWS,
    asked: PAGES,
  })
  expect((JSON.parse(last) as { operationId: number }).operationId).toBe(PAGES * PAGE_ROWS - 1)
})

test('a list that breaks off says where it goes on', async () => {
  broken = 3
  const { code, stdout, stderr } = await runNode(['bin/pawl.mjs', 'operation', 'list', '--all'], environment())
  expect({ code, lines: stdout.split('\n').length - 1 }).toEqual({ code: 3, lines: 3 * PAGE_ROWS })
  expect(stderr).toMatch(/HTTP 503 .*; --cursor 3 goes on here\n$/)
})

test('a file of phones that the disk does not take stays as it was', async () => {
  const folder = join(directory, 'phones')
  mkdirSync(folder)
  const file = join(folder, 'phones.json')
  const before = `${JSON.stringify({ version: 1, phones: { old: { padding: 'x'.repeat(3_000) } } })}\n`
  writeFileSync(file, before)
  const script = `
    const { openStore } = await import(process.env.STORE)
    const store = await openStore({ path: ${JSON.stringify(file)}, passphrase: async () => '', isInsecure: true, mustExist: true })
    try { store.save() } catch (error) { console.log(error.kind, error.message) }
    store.close()`
  const child = spawn('sh', ['-c', `ulimit -f 1; exec '${process.execPath}' --input-type=module -e "$SCRIPT"`], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...environment(), SCRIPT: script, STORE: pathToFileURL('cli/phone/store.ts').href },
  })
  expect(await text(child.stdout)).toMatch(/^output \S*phones\.json cannot be written: .*EFBIG.*\n$/)
  expect(readFileSync(file, 'utf8')).toBe(before)
  expect(readdirSync(folder)).toEqual(['phones.json'])
})
