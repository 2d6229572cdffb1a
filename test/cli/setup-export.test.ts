// Influences on a set-up file other than the server: the role that exported it, names that others chose, and the encoding of stdin.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { type SetupServer, startSetupServer } from '../helpers/setup.ts'

let server: SetupServer
beforeAll(async () => {
  server = await startSetupServer()
  expect(await server.apply('apiVersion: pawl/1\napplications: [{ id: retail }]\n')).toMatchObject({ code: 0, stderr: '' })
})
afterAll(() => server.close())

const json = async (line: readonly string[]): Promise<Record<string, unknown>> => {
  const { code, stdout } = await server.pawl([...line, '--json'])
  expect(code).toBe(0)
  return JSON.parse(stdout) as Record<string, unknown>
}

test('a webhook keeps the query of a receiver also where it was exported by who may only read, who is shown another spelling of the URL', async () => {
  const made = ['webhook', 'create', 'OPERATION', 'https://Hooks.bank.example?token=of-the-receiver', '--app', 'retail']
  const { id } = (await json([...made, '--name', 'spelled'])) as { id: string }
  const { stdout } = await server.apply('apiVersion: pawl/1\nusers: [{ username: spelling-reader, role: read-only }]\n')
  const reader = { PAWL_URL: server.url, PAWL_ADMIN: `spelling-reader:${/password: (\S+)/.exec(stdout)?.[1] ?? ''}` }
  const exported = await runCli(['export'], reader)
  expect(exported.stdout).toContain('url: https://hooks.bank.example/\n')
  expect(await server.apply(exported.stdout)).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/nothing to change\n$/) as unknown,
  })
  expect(await json(['webhook', 'show', id])).toMatchObject({ url: 'https://Hooks.bank.example?token=of-the-receiver' })
  await json(['webhook', 'remove', id])
  await json(['user', 'remove', 'spelling-reader'])
})

test('an export shows characters of names that would steer a terminal as what they are, also in notes', async () => {
  const made = [
    'webhook',
    'create',
    'OPERATION',
    'https://hooks.bank.example/b?x=1',
    '--app',
    'retail',
    '--name',
    'a\u202Eb\u009B2J',
  ]
  const { id } = (await json(made)) as { id: string }
  const { stderr } = await server.pawl(['export'])
  expect(stderr).toContain('webhook OPERATION a\\u{202e}b\\u{9b}2J of retail: the query')
  await json(['webhook', 'remove', id])
})

test('a template that was altered in the database is in no export, which names it, and no --prune removes it', async () => {
  const { db } = server.context
  const before = await server.exported()
  await sql`update template_revision set texts = '{}', signature_types = 'none' where template_name = 'login'`.execute(db)
  const exported = await server.pawl(['export'])
  const why = 'login is left out, because'
  expect(exported).toMatchObject({ code: 1, stderr: expect.stringContaining(`template ${why} apply refuses it: `) as unknown })
  expect(exported.stdout).not.toContain('templateName: login')
  const pruned = await server.apply(exported.stdout, '--prune', '--yes')
  expect(pruned).toMatchObject({ code: 0, stdout: expect.not.stringContaining('- template') as unknown })
  expect(await json(['template', 'show', 'login'])).toMatchObject({ templateName: 'login' })
  const templates = await server.pawl(['template', 'export'])
  expect(templates).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the template ${why} import refuses it: `) as unknown,
  })
  expect(templates.stdout).not.toContain('"login"')
  expect(await server.apply(before)).toMatchObject({ code: 0 })
  expect(await server.pawl(['template', 'export'])).toMatchObject({ code: 0, stderr: '' })
})

test('a file is not read from stdin in another encoding, whose letters would be replaced', async () => {
  const child = spawn(process.execPath, ['bin/pawl.mjs', 'apply', '-f', '-', '--dry-run'], {
    env: { PATH: process.env['PATH'], PAWL_URL: server.url, PAWL_ADMIN: `${server.admin.user}:${server.admin.password}` },
  })
  child.stdin.end(Buffer.from('apiVersion: pawl/1\napplications: [{ id: retail, name: P\xf8evod }]\n', 'latin1'))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'stdin is no UTF-8 text; --help says how to call it\n',
  })
})
