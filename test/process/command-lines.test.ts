// Every command line of the project as people type it: --help does nothing but help, and no fault shows a stack.
import { existsSync, globSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { findQuietPort } from '../helpers/ports.ts'
import { runNode } from '../helpers/process.ts'

// Each starts a process or three, and other test files run at the same time.
vi.setConfig({ testTimeout: 120_000 })

const directory = mkdtempSync(join(tmpdir(), 'pawl-command-lines-'))
const env = { PAWL_DATA_DIR: join(directory, 'data') }
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** What others of the folder are made of. */
const PARTS = ['bank-api.ts', 'command-line.ts', 'demo-phone.ts', 'open-database.ts']
const WRITTEN = ['.env.example', 'docs/CONFIG.md', 'docs/ENDPOINTS.md', 'docs/ERRORS.md']
const commands = [
  ...globSync('scripts/*.ts').filter((path) => !PARTS.some((part) => path.endsWith(part))),
  'bench/run.ts',
  'bin/pawl.mjs',
].toSorted()

test.each([...commands, ...globSync('scripts/ci/*.ts').toSorted()])(
  '%s prints how it is called, and does nothing else',
  async (path) => {
    const before = written(path)
    const lines = [['--help'], ['-h'], ['anything', '--unknown', '--help']]
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

describe('a server that does not answer is one line', () => {
  test.each([
    ['scripts/demo.ts'],
    ['scripts/pinning.ts', 'apps'],
    ['scripts/sdk-config.ts', '--app', 'my-app'],
    ['scripts/load.ts', '--record', join(directory, 'load.ndjson')],
  ])('%s', async (...args) => {
    const port = await findQuietPort()
    const { code, stdout, stderr } = await runNode([...args, '--admin', 'admin:a password that is none'], {
      PAWL_PORT: String(port),
    })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`^.*127\\.0\\.0\\.1:${port}.*\\n$`))
  })
})

/** When the files were written that a command writes into the project: nothing but the documents that are made from code. */
const written = (path: string): readonly number[] =>
  path.endsWith('-docs.ts') ? WRITTEN.map((file) => statSync(file).mtimeMs) : []
