// Every command line of the project as people type it: --help does nothing but help, and no fault shows a stack.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { ENTRIES } from '../../cli/entries.ts'
import { isNoun } from '../../cli/program.ts'
import { runCli } from '../helpers/cli.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { runNode } from '../helpers/process.ts'

// Each starts a process or three, and other test files run at the same time.

const directory = mkdtempSync(join(tmpdir(), 'pawl-command-lines-'))
const env = { PAWL_DATA_DIR: join(directory, 'data') }
const run = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  runCli(args, { ...env, ...more, HOME: directory })
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** What others of the folders are made of. */
const PARTS_OF_CHECKS = ['backend', 'desk', 'guard', 'server', 'snippets', 'way'].map((name) => `scripts/ci/${name}.ts`)
const PARTS = ['scripts/command-line.ts', ...PARTS_OF_CHECKS]
const list = (pattern: string): string[] => globSync(pattern).filter((path) => !PARTS.includes(path))
const WRITTEN = ['.env.example', 'docs/CLI.md', 'docs/CONFIG.md', 'docs/ENDPOINTS.md', 'docs/ERRORS.md']
const commands = [...list('scripts/*.ts'), 'bench/run.ts'].toSorted()
const SCRIPT = '/usr/bin/script'

test('a reader that goes away early is no fault', async () => {
  const child = spawn(process.execPath, ['bin/pawl.mjs', '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test.each([...commands, ...list('scripts/ci/*.ts').toSorted()])(
  '%s prints how it is called, and does nothing else',
  async (path) => {
    const before = written(path)
    // All read them by scripts/command-line.ts: one is asked in each way, the others as is hardest.
    expect(readFileSync(path, 'utf8')).toMatch(/ from '.*\/command-line\.ts'$/m)
    const hardest = ['anything', '--unknown', '--help']
    const lines = path === 'bench/run.ts' ? [['--help'], ['-h'], hardest] : [hardest]
    for (const { code, stdout, stderr } of await Promise.all(lines.map((args) => runNode([path, ...args], env)))) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(new RegExp(`^\\S.*:\\n  (node ${path}|npm run \\S+)`))
    }
    expect(existsSync(env.PAWL_DATA_DIR)).toBe(false)
    expect(written(path)).toEqual(before)
  },
)

test.each(commands)('%s says in one line which option it does not know', async (path) => {
  const { code, stdout, stderr } = await runNode([path, '--unknown'], env)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^.*--unknown.*\n$/)
})

describe('pawl', () => {
  const paths = ENTRIES.flatMap((entry) =>
    isNoun(entry) ? [[entry.name], ...entry.commands.map(({ name }) => [entry.name, name])] : [[entry.name]],
  )

  test.each([[[]], ...paths.map((path) => [path])])(
    '%j --help prints how it is called, and nothing else is done',
    async (path) => {
      for (const words of [['--help'], ['-h'], ['--unknown', '--help']]) {
        const { code, stdout, stderr } = await run([...path, ...words])
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
        expect(stdout).toMatch(new RegExp(`^Usage: ${['pawl', ...path].join(' ')} `))
      }
      expect(existsSync(env.PAWL_DATA_DIR)).toBe(false)
    },
  )

  test.each([[[]], ...paths.map((path) => [path])])('%j says in one line which option it does not know', async (path) => {
    const { code, stdout, stderr } = await run([...path, '--unknown'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^.*--unknown.*\n$/)
    const json = await run([...path, '--unknown', '--json'])
    expect(JSON.parse(json.stderr)).toEqual({ error: stderr.trim(), exitCode: 2 })
  })

  test('every command has an example, which its own command line understands', () => {
    const commands = ENTRIES.flatMap((entry) =>
      isNoun(entry) ? entry.commands.map((one) => [entry.name, one] as const) : [['', entry] as const],
    )
    for (const [noun, { name, examples }] of commands) {
      expect(examples.length, name).toBeGreaterThan(0)
      for (const example of examples) expect(example).toMatch(new RegExp(`^${noun === '' ? '' : `${noun} `}${name}(?: |$)`))
    }
  })

  test('as a process it is the same, under the Node of the packages too', async () => {
    const { code, stdout, stderr } = await runNode(['bin/pawl.mjs', 'app', 'list', '--unknown'], env)
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: "unknown option '--unknown'; --help says how to call it\n",
    })
    expect((await runNode(['bin/pawl.mjs', '--help'], env)).stdout).toContain('  app ')
  })
})

describe('a server that does not answer is one line', () => {
  const admin = ['--admin', 'admin:a password that is none']

  test.each([['app list'], ['app sdk-config --app my-app'], ['certificate list --app my-app'], ['demo']])(
    'pawl %s',
    async (line) => {
      const port = await findQuietPort()
      const { code, stdout, stderr } = await run([...line.split(' '), ...admin], { PAWL_PORT: String(port) })
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
      expect(stderr).toMatch(new RegExp(`^.*127\\.0\\.0\\.1:${port}.*\\n$`))
    },
  )
})

describe.skipIf(!existsSync(SCRIPT))(`at a terminal (needs ${SCRIPT})`, () => {
  test.each([
    ['Ctrl-C', '\x03', 130],
    ['Ctrl-D', '\x04', 5],
  ])('%s in place of a password ends the command', async (_, key, status) => {
    const line = `'${process.execPath}' bin/pawl.mjs login --url http://127.0.0.1:9`
    const child = spawn(SCRIPT, ['--quiet', '--return', '--command', line, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], HOME: directory },
    })
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      if (!printed.includes('Password of') && (printed + more).includes('Password of')) child.stdin.write(key)
      printed += more
    })
    const [code] = (await once(child, 'exit')) as [number | null]
    expect([code, printed], printed).toEqual([
      status,
      expect.stringMatching(status === 5 ? /no password was given/ : /Password of/),
    ])
  })
})

/** When the files were written that a command writes into the project: nothing but the documents that are made from code. */
const written = (path: string): readonly number[] =>
  path.endsWith('-docs.ts') ? WRITTEN.map((file) => statSync(file).mtimeMs) : []
