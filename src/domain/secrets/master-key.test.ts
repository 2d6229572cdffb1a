// Tests the sources of master keys: the settings, a command, a file. Tests the error of a start without keys.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { systemPlatform as platform } from '../../lib/platform.ts'
import { loadMasterKeys, runKeyCommand } from './master-key.ts'

const directory = mkdtempSync(join(tmpdir(), 'pawl-keys-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const [one, two] = [randomBytes(32), randomBytes(32)]
const base64 = (key: Buffer): string => key.toString('base64')

function script(name: string, body: string): string {
  const path = join(directory, name)
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o700)
  return path
}

const load = (config: { masterKeyCommand?: string; dataDir?: string }, kind: 'embedded' | 'postgresql' = 'postgresql') =>
  loadMasterKeys({ config: { dataDir: directory, ...config }, secrets: {} }, kind, platform, async () => false)

test('a command prints the keys, the one that seals first', async () => {
  const command = script('both', `printf '%s\\n' "$1" '${base64(two)}'`)
  expect(await load({ masterKeyCommand: `${command}  ${base64(one)}` })).toEqual([one, two])
})

test.each([
  [
    'does not exist',
    () => join(directory, 'missing'),
    /missing cannot be run \(ENOENT\); look at its path and at who may execute it$/,
  ],
  [
    'fails',
    () => script('fails', `echo ${base64(one)}; echo marked >&2; exit 3`),
    /fails ended with exit status 3; run it by hand/,
  ],
  [
    'prints something else',
    () => script('other', 'echo marked'),
    /COMMAND: what it prints is not 32 bytes in standard Base64; run it by hand/,
  ],
  ['prints nothing', () => script('nothing', ':'), /COMMAND: it prints nothing; run it by hand/],
  [
    'prints without end',
    () => script('endless', 'exec yes marked'),
    /endless printed more than 65536 bytes; it is to print the key alone$/,
  ],
])('a command that %s is told without what it printed', async (_, make, message) => {
  const error = await load({ masterKeyCommand: `${make()} marked` }).catch((thrown: unknown) => thrown)
  expect(String(error)).toMatch(message)
  expect(String(error)).toMatch(/^StartError: PAWL_MASTER_KEY_COMMAND: [^\n]+$/)
  expect(String(error)).not.toContain('marked')
  expect(String(error)).not.toContain(base64(one))
})

test('a command sees nothing of the environment but what it is given', async () => {
  const seen = script('seen', 'exec /usr/bin/env')
  expect((await runKeyCommand(seen, {})).split('\n').filter((line) => !/^(PWD|SHLVL|_|OLDPWD)=|^$/.test(line))).toEqual([])
  const given = { PATH: '/usr/bin:/bin', VAULT_TOKEN: 'two words', LANG: 'C' }
  expect((await runKeyCommand('env', given)).trim().split('\n').toSorted()).toEqual([
    'LANG=C',
    'PATH=/usr/bin:/bin',
    'VAULT_TOKEN=two words',
  ])
  process.env['PAWL_MARKED'] = 'marked'
  try {
    expect(await runKeyCommand(seen, { PATH: '/bin' })).not.toContain('marked')
  } finally {
    delete process.env['PAWL_MARKED']
  }
})

test('a command that does not end is ended', async () => {
  const command = script('slow', 'exec sleep 60')
  await expect(runKeyCommand(command, {}, 200)).rejects.toThrow('slow did not end within 0.2 seconds')
})

test('the key file of an embedded database is made once, and may have several lines', async () => {
  const dataDir = mkdtempSync(join(directory, 'data-'))
  const made = Buffer.from((await load({ dataDir }, 'embedded'))[0])
  expect(await load({ dataDir }, 'embedded')).toEqual([made])
  const path = join(dataDir, 'master.key')
  writeFileSync(path, `${base64(one)}\n${readFileSync(path, 'utf8')}\n`)
  expect(await load({ dataDir }, 'embedded')).toEqual([one, made])
  writeFileSync(path, 'marked')
  await expect(load({ dataDir }, 'embedded')).rejects.toThrow(/master\.key is not a master key/)
})

test('PostgreSQL needs a key', async () => {
  await expect(load({})).rejects.toThrow('PAWL_MASTER_KEY: needed together with DATABASE_URL')
})
