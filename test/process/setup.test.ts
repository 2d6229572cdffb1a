// A set-up file as operators use it: processes of pawl, on servers that have just started.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import {
  ADMIN_PASSWORD,
  createInstallation,
  DATABASE_KIND,
  endEverything,
  type Environment,
  runNode,
  startNode,
  startPawl,
} from '../helpers/process.ts'
import { EXAMPLE, startProxy } from '../helpers/setup.ts'

afterAll(endEverything)

/** A new server, and command lines for it. */
async function start() {
  const installation = await createInstallation(DATABASE_KIND)
  const server = await startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const env: Environment = { PAWL_URL: server.url, PAWL_ADMIN: `admin:${ADMIN_PASSWORD}` }
  return {
    url: server.url,
    place: (name: string) => join(installation.directory, name),
    pawl: (...line: string[]) => runCli(line, env),
    start: (...line: string[]) => runNode(['bin/pawl.mjs', ...line], env),
  }
}

test('two apply a file to a new server at the same time; its export makes another server the same', async () => {
  const first = await start()
  const file = first.place('pawl.yaml')
  writeFileSync(file, EXAMPLE)
  const ends = await Promise.all([first.start('apply', '-f', file), first.start('apply', '-f', file)])
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

test.each([
  ['SIGINT', []],
  ['SIGTERM', ['--json']],
] as const)('%s ends an apply once the secret of its step is shown, and the next one goes on', async (signal, more) => {
  const { place, url, pawl } = await start()
  const file = place('pawl.yaml')
  const names = ['first', 'second', 'third']
  writeFileSync(
    file,
    `apiVersion: pawl/1\nusers:\n${names.map((name) => `  - { username: ${name}, role: read-only }\n`).join('')}`,
  )
  let made = 0
  const proxy = await startProxy(
    { url },
    {
      before: async (method) => {
        if (method === 'POST' && ++made === 2) applying.send(signal)
      },
    },
  )
  const env: Environment = { PAWL_URL: proxy.url, PAWL_ADMIN: `admin:${ADMIN_PASSWORD}` }
  const applying = startNode(['bin/pawl.mjs', 'apply', '-f', file, ...more], env)
  const { code, stdout, stderr } = await applying.ended
  await proxy.close()
  expect(code).toBe(1)
  expect(stderr).toContain(`user third: ${signal} came; done: 2 of 3, not done: user third; the next pawl apply goes on`)
  const shown = more.length > 0 ? /"value": "([^"]+)"/g : /password: (\S+) \(shown only now\)/g
  const passwords = [...stdout.matchAll(shown)].map(([, password = '']) => password)
  expect(passwords).toHaveLength(2)
  for (const [i, password] of passwords.entries()) {
    const own = `${names[i]}:${password}`
    expect(await runCli(['app', 'list', '--admin', own], { PAWL_URL: url })).toMatchObject({ code: 0 })
  }
  expect((await pawl('apply', '-f', file)).stdout).toMatch(/^\+ user third\n/)
})
