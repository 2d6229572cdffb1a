// bin/pawl.mjs under an old Node: it runs the Node of the project and ends as that ends, also as the first process of a container, which no
// signal of its own ends.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PATIENCE_MS } from '../helpers/patience.ts'

// Process ids of its own, whoever runs the test.
const AS_FIRST = ['unshare', '--user', '--map-root-user', '--pid', '--fork']
const canBeFirst = spawnSync('unshare', [...AS_FIRST.slice(1), 'true']).status === 0

let project: string

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'pawl-wrapper-'))
  cpSync(fileURLToPath(new URL('../../bin', import.meta.url)), join(project, 'bin'), { recursive: true })
  const versions = join(project, 'bin/node-version.mjs')
  const text = readFileSync(versions, 'utf8')
  const old = text.replace(/^const OLDEST = .*$/m, 'const OLDEST = [1000, 0]')
  expect(old).not.toBe(text)
  writeFileSync(versions, old)
  // Stands for the Node of the project: ends as the last word says.
  const node = join(project, 'node_modules/.bin/node')
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true })
  writeFileSync(
    node,
    '#!/bin/sh\nulimit -c 0\nfor last; do :; done\ncase $last in [0-9]*) exit $last;; esac\nkill -$last $$\nsleep 5\n',
  )
  chmodSync(node, 0o755)
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

function run(word: string, before: readonly string[] = []): { status: number | null; signal: NodeJS.Signals | null } {
  const [command, ...args] = [...before, process.execPath, join(project, 'bin/pawl.mjs'), word]
  const { status, signal } = spawnSync(command, args, { cwd: project, timeout: PATIENCE_MS })
  return { status, signal }
}

describe.skipIf(!canBeFirst)('as the first process', () => {
  test.each([
    ['KILL', 137],
    ['TERM', 143],
    ['INT', 130],
    ['HUP', 129],
    ['SEGV', 139],
    ['ABRT', 134],
    ['QUIT', 131],
    ['USR1', 138],
    ['XCPU', 152],
  ])('a child that SIG%s ends is told as %i', (name, status) => {
    expect(run(name, AS_FIRST)).toEqual({ status, signal: null })
  })

  test.each([0, 1, 3, 137, 255])('a child that ends with %i is told so', (status) => {
    expect(run(String(status), AS_FIRST)).toEqual({ status, signal: null })
  })
})

describe('as any other process', () => {
  test.each(['KILL', 'TERM', 'INT', 'HUP', 'QUIT'] as const)('it ends by SIG%s, as its child', (name) => {
    expect(run(name)).toEqual({ status: null, signal: `SIG${name}` })
  })

  test.each([0, 1, 3, 255])('it ends with %i, as its child', (status) => {
    expect(run(String(status))).toEqual({ status, signal: null })
  })
})
