// bin/prepare.mjs installs when something is missing, and only then.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

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

/** `version`: of another Node, as far as it says what it is. */
function prepare(version = process.versions.node): { installs: boolean; status: number | null; stderr: string } {
  const env = { PATH: process.env['PATH'], npm_execpath: join(project, 'npm-cli.js') }
  const path = join(project, 'version.cjs')
  writeFileSync(path, `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`)
  const args = ['--require', path, join(project, 'bin/prepare.mjs')]
  const { status, stderr } = spawnSync(process.execPath, args, { env, cwd: tmpdir(), encoding: 'utf8' })
  return { installs: existsSync(join(project, 'called')), status, stderr }
}

test('a fresh clone is installed', () => {
  expect(prepare()).toMatchObject({ installs: true, status: 0 })
})

test('a complete installation is left alone, packages for other platforms may be missing', () => {
  writePackages('node_modules/.package-lock.json', { 'node_modules/a': needed, 'node_modules/b': development })
  expect(prepare()).toEqual({ installs: false, status: 0, stderr: '' })
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

describe('on a Node that pawl does not run on', () => {
  const whole = { 'node_modules/a': needed, 'node_modules/b': development }
  const bringNode =
    "require('fs').mkdirSync('node_modules/.bin', { recursive: true }); require('fs').writeFileSync('node_modules/.bin/node', '')"
  const npm = (script: string): void =>
    writeFileSync(
      join(project, 'npm-cli.js'),
      `require('fs').writeFileSync('called', process.argv.slice(2).join(' ')); ${script}`,
    )

  test.each(['20.18.0', '22.1.0', '26.9.0'])('%s: an installation that has left it out is completed', (version) => {
    writePackages('node_modules/.package-lock.json', whole)
    npm(bringNode)
    expect(prepare(version)).toMatchObject({ installs: true, status: 0 })
    expect(readFileSync(join(project, 'called'), 'utf8')).toBe('ci --include=dev --include=optional')
    rmSync(join(project, 'called'))
    expect(prepare(version)).toMatchObject({ installs: false, status: 0 })
  })

  test('when it does not come with the packages either, that is said', () => {
    writePackages('node_modules/.package-lock.json', whole)
    const { installs, status, stderr } = prepare('20.18.0')
    expect([installs, status]).toEqual([true, 1])
    expect(stderr).toMatch(
      /pawl needs Node 26\.10 or newer, this is 20\.18\.0, and the package node-linux-\w+, which brings one, was not installed: .*npm ci/,
    )
  })

  test.each(['18.20.4', '16.0.0', '19.9.0'])(
    '%s, which may not install either, is refused before anything is touched',
    (version) => {
      npm(bringNode)
      const { installs, status, stderr } = prepare(version)
      expect([installs, status]).toEqual([false, 1])
      expect(stderr).toMatch(new RegExp(`^pawl needs Node 26\\.10 or newer, this is ${version}[^\n]+\n$`))
    },
  )
})

test('a failed installation ends with 1', () => {
  writeFileSync(join(project, 'npm-cli.js'), 'process.exit(7)')
  expect(prepare().status).toBe(1)
})
