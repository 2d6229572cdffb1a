// A set-up file as operators use it: processes of pawl, on servers that have just started.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  runNode,
  startPawl,
} from '../helpers/process.ts'
import { EXAMPLE } from '../helpers/setup.ts'

afterAll(endEverything)

/** A new server, and command lines for it. */
async function start() {
  const installation = await createInstallation(DATABASE_KIND)
  const server = await startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const env: Environment = { PAWL_URL: server.url, PAWL_ADMIN: `admin:${ADMIN_PASSWORD}` }
  return {
    place: (name: string) => join(installation.directory, name),
    pawl: (...line: string[]) => runNode(['bin/pawl.mjs', ...line], env),
  }
}

test('two apply a file to a new server at the same time; its export makes another server the same', async () => {
  const first = await start()
  const file = first.place('pawl.yaml')
  writeFileSync(file, EXAMPLE)
  const ends = await Promise.all([first.pawl('apply', '-f', file), first.pawl('apply', '-f', file)])
  expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ends.map(() => ({ code: 0, stderr: '' })))
  const printed = ends.map(({ stdout }) => stdout).join('')
  expect(printed.match(/ (password|secret): \S+ \(shown only now\)/g)).toHaveLength(3)
  expect((await first.pawl('apply', '-f', file)).stdout).toMatch(/^not in the file, .*\nnothing to change\n$/)
  const exported = first.place('exported.yaml')
  expect(await first.pawl('export', '-o', exported)).toMatchObject({ code: 0, stdout: '', stderr: '' })

  const second = await start()
  expect(await second.pawl('apply', '-f', exported)).toMatchObject({ code: 0, stderr: '' })
  const again = second.place('again.yaml')
  expect(await second.pawl('export', '-o', again)).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect(readFileSync(again, 'utf8')).toBe(readFileSync(exported, 'utf8'))
  expect((await second.pawl('apply', '-f', again)).stdout).toBe('nothing to change\n')
})
