// pawl oidc, providers in a set-up file, and a phone that is bound by a login, against `oidc-provider`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Terminal } from '../../cli/command.ts'
import { ENTRIES } from '../../cli/entries.ts'
import { runProgram } from '../../cli/program.ts'
import { runCli } from '../helpers/cli.ts'
import { browse, CLIENT_SECRET, type OpenIdServer, REDIRECT_URI, startOpenIdServer } from '../helpers/openid.ts'
import { registrationOf, startServerWithWorld, type World } from '../helpers/world.ts'

let provider: OpenIdServer
let world: World
const home = mkdtempSync(join(tmpdir(), 'pawl-oidc-'))
const secretFile = join(home, 'secret.txt')
beforeAll(async () => {
  provider = await startOpenIdServer({})
  const env = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }
  ;({ world } = await startServerWithWorld({ env }))
  writeFileSync(secretFile, `${CLIENT_SECRET}\n`)
})
afterAll(async () => {
  await world.close()
  provider.close()
  rmSync(home, { recursive: true, force: true })
})

const environment = () => ({ HOME: home, PAWL_URL: world.url, PAWL_ADMIN: world.bank.credential ?? '' })
const pawl = (...line: string[]) => runCli(line, environment())
const json = async (...line: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await pawl(...line, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}
const apply = (file: string, ...line: string[]) => runCli(['apply', '-f', '-', ...line], environment(), { input: file })

test('a provider is made, changed, listed, shown and removed', async () => {
  const made = ['--issuer', provider.issuer, '--client-id', 'app', '--redirect-uri', REDIRECT_URI, '--secret-file', secretFile]
  expect(await json('oidc', 'set', 'web', ...made)).toMatchObject({ providerId: 'web', hasCredentials: true, isCommitted: true })
  expect(await json('oidc', 'set', 'web', '--bank-commits', '--flag', 'BY_LOGIN')).toMatchObject({
    clientId: 'app',
    hasCredentials: true,
    isCommitted: false,
    flags: ['BY_LOGIN'],
  })
  expect(await json('oidc', 'set', 'web', '--committed')).toMatchObject({ isCommitted: true, flags: ['BY_LOGIN'] })
  expect(await json('oidc', 'show', 'web')).toMatchObject({ issuer: provider.issuer })
  expect((await pawl('oidc', 'list')).stdout).toContain('client_secret_basic')
  expect((await pawl('oidc', 'show', 'web')).stdout).not.toContain(CLIENT_SECRET)
  expect(await pawl('oidc', 'set', 'other', '--client-id', 'x')).toMatchObject({ code: 1, stdout: '' })
  await json('oidc', 'set', 'gone', ...made)
  await json('oidc', 'remove', 'gone')
  expect(await pawl('oidc', 'remove', 'gone')).toMatchObject({ code: 4 })
})

test.each([
  ['--protocol', '3.3'],
  ['--algorithm', 'EC_P384_ML_L3'],
])('a phone is bound by a login: %s %s', async (...protocol) => {
  const userId = world.newUser()
  let notes = ''
  let isOfAnother = true
  const terminal: Terminal = {
    env: { ...environment(), PAWL_PHONE_PASSWORD: '1234' },
    columns: undefined,
    write: (text) => {
      notes += text
    },
    print: async (text) => {
      notes += text
      return true
    },
    note: (line) => {
      notes += `${line}\n`
    },
    askSecret: async () => {
      const ended = await browse(/^http\S+$/m.exec(notes)?.[0] ?? '', userId)
      return isOfAnother ? ended.replace(/state=[\w-]/, 'state=other') : ended
    },
    readInput: async () => '',
    interruption: () => new AbortController().signal,
  }
  const store = ['--store', join(home, `${userId}.json`), '--insecure-store']
  const line = ['phone', 'bind', '--oidc', 'web', '--app', world.applicationId, ...protocol, ...store]
  expect(await runProgram(ENTRIES, line, terminal)).toBe(1)
  expect(notes).toContain('the address is not of this login')
  expect(await registrationOf(world, userId)).toBe('NONE')
  notes = ''
  isOfAnother = false
  expect({ code: await runProgram(ENTRIES, line, terminal), notes }).toMatchObject({ code: 0 })
  expect(notes).toContain('is bound to activation')
  expect(notes).not.toContain('commits')
  expect(await registrationOf(world, userId)).toBe('ACTIVE')
  const status = await runCli(['phone', 'status', ...store], terminal.env as Record<string, string>)
  expect(status.stdout).toContain('ACTIVE')
})

test('one way to bind a phone is named', async () => {
  const two = await pawl('phone', 'bind', 'AAAAA-AAAAA-AAAAA-AAAAA', '--oidc', 'web', '--app', world.applicationId)
  expect(two).toMatchObject({ code: 2, stderr: expect.stringContaining('--oidc PROVIDER') as unknown })
})

test('a set-up file has everything of a provider but its secret', async () => {
  const exported = await pawl('export')
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('OpenID provider web of test-app') as unknown })
  expect(exported.stdout).toContain('providerId: web')
  expect(exported.stdout).not.toContain(CLIENT_SECRET)
  expect(await apply(exported.stdout)).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to change') as unknown })

  const of = (...providers: string[]) =>
    `apiVersion: pawl/1\napplications:\n  - id: test-app\n    oidcProviders:\n${providers.map((one) => `      - ${one}\n`).join('')}`
  const web = `providerId: web, issuer: '${provider.issuer}', clientId: app, redirectUri: '${REDIRECT_URI}'`
  expect((await apply(of(`{ ${web}, userIdClaim: customer }`))).stdout).toContain('~ OpenID provider web of test-app')
  expect(await json('oidc', 'show', 'web')).toMatchObject({ userIdClaim: 'customer', hasCredentials: true, flags: ['BY_LOGIN'] })
  const open = `{ providerId: open, issuer: '${provider.issuer}', clientId: open, clientAuthentication: none, redirectUri: 'app:/oidc' }`
  expect((await apply(of(open))).stdout).toContain('+ OpenID provider open of test-app')
  expect(await json('oidc', 'show', 'open')).toMatchObject({ clientAuthentication: 'none', hasCredentials: false })
  // A secret for another server is another secret, and one that is not there cannot be made.
  const moved = await apply(of(`{ ${web.replace(provider.issuer, 'https://login.other.example')} }`))
  expect(moved).toMatchObject({ code: 1, stderr: expect.stringContaining('--secret-file or --key-file changes both') as unknown })
  const missing = await apply(of(`{ ${web.replace('providerId: web', 'providerId: new')} }`))
  expect(missing.code).toBe(0)
  expect(missing.stdout + missing.stderr).toContain('OpenID provider new of test-app is left out')
  expect(await pawl('oidc', 'show', 'new')).toMatchObject({ code: 4 })
  expect(await apply(of(open, open))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('open stands at [0] already') as unknown,
  })
})
