// Files that commands write over.
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readCredential, storeCredential } from '../../cli/credential-store.ts'
import { writeWhole } from '../../cli/whole-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-whole-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const modeOf = (path: string): number => statSync(path).mode & 0o777

test('a file is replaced by another one, which keeps its mode', () => {
  const path = join(folder, 'a')
  writeFileSync(path, 'before')
  chmodSync(path, 0o604)
  const { ino } = statSync(path)
  writeWhole(path, 'after')
  expect([readFileSync(path, 'utf8'), modeOf(path), readdirSync(folder)]).toEqual(['after', 0o604, ['a']])
  // Who reads the file of before meanwhile reads all of it.
  expect(statSync(path).ino).not.toBe(ino)
})

test('a mode that is given is that of the file, whatever it was before', () => {
  const path = join(folder, 'a')
  writeFileSync(path, 'before', { mode: 0o644 })
  writeWhole(path, 'after', 0o600)
  expect(modeOf(path)).toBe(0o600)
})

test('a link stays, and what is no file is written to as it is', () => {
  writeFileSync(join(folder, 'a'), 'before')
  symlinkSync('a', join(folder, 'link'))
  writeWhole(join(folder, 'link'), 'after')
  expect(lstatSync(join(folder, 'link')).isSymbolicLink()).toBe(true)
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('after')
  writeWhole('/dev/null', 'nothing')
  expect(statSync('/dev/null').isFile()).toBe(false)
  expect(() => writeWhole('/dev/full', 'nothing')).toThrow('ENOSPC')
})

test('a failure leaves what was there', () => {
  const path = join(folder, 'a')
  writeFileSync(path, 'before')
  expect(() => writeWhole(join(folder, 'none', 'a'), 'after')).toThrow('ENOENT')
  chmodSync(folder, 0o500)
  // Root may write everywhere.
  if (process.getuid?.() !== 0) expect(() => writeWhole(path, 'after')).toThrow('EACCES')
  chmodSync(folder, 0o700)
  expect(readdirSync(folder)).toEqual(['a'])
})

test('the credential of a login replaces the one of before for this account alone', () => {
  const env = { XDG_CONFIG_HOME: folder }
  const path = storeCredential(env, { url: 'http://a', admin: 'a:b' })
  chmodSync(path, 0o644)
  storeCredential(env, { url: 'http://b', admin: 'c:d' })
  expect([readCredential(env), modeOf(path), readdirSync(join(folder, 'pawl'))]).toEqual([
    { url: 'http://b', admin: 'c:d' },
    0o600,
    ['credential.json'],
  ])
})

test('a credential that can be neither stored nor read is told so, and is no defect', () => {
  writeFileSync(join(folder, 'no-folder'), '')
  expect(() => storeCredential({ XDG_CONFIG_HOME: join(folder, 'no-folder') }, { url: 'http://a', admin: 'a:b' })).toThrow(
    expect.objectContaining({ kind: 'output', message: expect.stringContaining('the credential of pawl login: ') as string }),
  )
  // The system refuses the name, as it refuses a folder of another account.
  expect(() => readCredential({ XDG_CONFIG_HOME: 'x'.repeat(5_000) })).toThrow(expect.objectContaining({ kind: 'credential' }))
})
