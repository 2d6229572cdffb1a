// bin/prepare.mjs installs when something is missing, and only then.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const bin = fileURLToPath(new URL('../../bin', import.meta.url))
const needed = { version: '1.0.0', integrity: 'sha512-a' }
const development = { version: '2.0.0', integrity: 'sha512-b', dev: true }
const otherPlatform = { version: '3.0.0', integrity: 'sha512-c', optional: true }
const lock = { '': {}, 'node_modules/a': needed, 'node_modules/b': development, 'node_modules/c': otherPlatform }

let project: string

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'pawl-prepare-'))
  cpSync(bin, join(project, 'bin'), { recursive: true })
  writePackages('package-lock.json', lock)
  // Stands for npm: leaves a mark and what it was asked for.
  writeFileSync(join(project, 'npm-cli.js'), 'require("fs").writeFileSync("called", process.argv.slice(2).join(" "))')
})

afterEach(() => rmSync(project, { recursive: true, force: true }))

function writePackages(path: string, packages: Record<string, unknown>): void {
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  writeFileSync(join(project, path), JSON.stringify({ packages }))
}

function prepare(): { installs: boolean; status: number | null } {
  const env = { PATH: process.env['PATH'], npm_execpath: join(project, 'npm-cli.js') }
  const { status } = spawnSync(process.execPath, [join(project, 'bin/prepare.mjs')], { env, cwd: tmpdir() })
  return { installs: existsSync(join(project, 'called')), status }
}

test('a fresh clone is installed', () => {
  expect(prepare()).toEqual({ installs: true, status: 0 })
})

test('a complete installation is left alone, packages for other platforms may be missing', () => {
  writePackages('node_modules/.package-lock.json', { 'node_modules/a': needed, 'node_modules/b': development })
  expect(prepare()).toEqual({ installs: false, status: 0 })
})

test('an installation without development tools is completed', () => {
  writePackages('node_modules/.package-lock.json', { 'node_modules/a': needed })
  expect(prepare().installs).toBe(true)
})

test('an installation of another lock file is replaced', () => {
  writePackages('node_modules/.package-lock.json', {
    'node_modules/a': { ...needed, version: '1.0.1' },
    'node_modules/b': development,
  })
  expect(prepare().installs).toBe(true)
})

test('a failed installation ends with 1', () => {
  writeFileSync(join(project, 'npm-cli.js'), 'process.exit(7)')
  expect(prepare().status).toBe(1)
})
