// Credentials that somebody changed in the database by hand (cloud §2).
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { isCredentialAuthentic } from '../../../src/domain/credential/mac.ts'
import { loadInstallationKeys } from '../../../src/domain/installation-keys.ts'
import { findCredential } from '../../../src/storage/credential/credentials.ts'
import { startTestServer, type TestServer } from '../../helpers/app.ts'
import { createBank } from '../../helpers/bank.ts'
import { expectError, SECOND } from '../../helpers/expectations.ts'
import { member } from '../../../phone/http.ts'
import { expectOk } from '../../helpers/world.ts'

const ALTERED = 'a credential was altered in the database and is refused'
let server: TestServer
let round = 0
/** The users of a test have names of their own. */
let [victim, attacker] = ['', '']
let passwords: Record<string, string>
let logged = 0
beforeAll(async () => {
  server = await startTestServer()
  expectOk(await admin().createApplication('my-app'))
})
beforeEach(async () => {
  round += 1
  ;[victim, attacker] = [`victim-${round}`, `attacker-${round}`]
  passwords = {}
  for (const username of [victim, attacker]) passwords[username] = await create(username)
  logged = server.log().length
})
afterAll(() => server.close())

const admin = () => createBank(server.url, `${server.admin.user}:${server.admin.password}`)
/** A user with a generated password, which takes no slow hash. */
const create = async (username: string): Promise<string> => {
  const user = { username, role: 'integration', application: 'my-app' }
  return String(member(expectOk(await admin().call('POST', '/admin/users', user)).json, 'password'))
}
const statusOf = async (username: string, password = passwords[username]): Promise<number> =>
  (await createBank(server.url, `${username}:${password}`).view('x')).status
/** Runs a statement about the users of this test. */
const alter = (statement: string) =>
  sql.raw(statement.replaceAll(`'attacker'`, `'${attacker}'`).replaceAll(`'victim'`, `'${victim}'`)).execute(server.context.db)
const log = (): string => server.log().slice(logged)

test.each([
  ['role', `update credential set role = 'admin' where username = 'attacker'`],
  ['application', `update credential set application_id = null where username = 'attacker'`],
  ['list of rights', `update credential set rights = 'keys:derive' where username = 'attacker'`],
  ['expiry', `update credential set expires_at = now() + interval '1 hour' where username = 'attacker'`],
  ['expiry, to one that never comes', `update credential set expires_at = 'infinity' where username = 'attacker'`],
  ['MAC', `update credential set mac = null where username = 'attacker'`],
  [
    'MAC of another',
    `update credential set mac = (select mac from credential where username = 'victim') where username = 'attacker'`,
  ],
  ['expiry of the password', `update credential_password set expires_at = now() + interval '1 hour' where username = 'attacker'`],
  [
    'expiry of the password, to one that never comes',
    `update credential_password set expires_at = 'infinity' where username = 'attacker'`,
  ],
  [
    'a second password',
    `insert into credential_password (credential_password_id, username, scheme, password_hash, created_at)
      select 'copy', username, scheme, password_hash, now() from credential_password where username = 'attacker'`,
  ],
])('a changed %s makes a credential worthless within five seconds, and the log says so', async (_, statement) => {
  expect(await statusOf(attacker)).toBe(200)
  await alter(statement)
  server.clock.advance(5 * SECOND)
  expect(await statusOf(attacker)).toBe(401)
  expect(log()).toContain(ALTERED)
  expect(await statusOf(victim)).toBe(200)
  expectOk(await admin().call('GET', '/admin/users'))
  expectOk(await admin().call('DELETE', `/admin/users/${attacker}`))
})

test('the password and salt of one user do not open the credential of another', async () => {
  expectOk(await admin().call('POST', '/admin/users', { username: 'other-admin', role: 'admin' }))
  expectOk(await admin().call('POST', `/admin/users/${attacker}/password`, { password: 'chosen by attacker' }))
  await alter(
    `update credential set salt = (select salt from credential where username = 'attacker') where username = 'other-admin'`,
  )
  await alter(`update credential_password set scheme = 'chosen', password_hash = (select password_hash from credential_password
    where username = 'attacker') where username = 'other-admin'`)
  expect(await statusOf('other-admin', 'chosen by attacker')).toBe(401)
})

test('a new password does not make a forged role good; removed and created anew the user is', async () => {
  await alter(`update credential set role = 'admin' where username = 'attacker'`)
  const refused = await admin().call('POST', `/admin/users/${attacker}/password`, {})
  expectError(refused, 400, 'ERROR_ADMIN')
  expect(refused.text).toContain('was altered in the database')
  expectOk(await admin().call('DELETE', `/admin/users/${attacker}`))
  expect(await statusOf(attacker, await create(attacker))).toBe(200)
})

test('both passwords of a change work, and the MAC follows', async () => {
  const change = { password: 'chosen the second time', keepPreviousSeconds: 60 }
  expectOk(await admin().call('POST', `/admin/users/${victim}/password`, change))
  expect([await statusOf(victim), await statusOf(victim, 'chosen the second time')]).toEqual([200, 200])
  expect(log()).not.toContain(ALTERED)
})

// The last: the server does not know the key that is made anew.
test('rows that are older than the MACs get theirs together with the key, and never again', async () => {
  const { db, recordKeys, platform } = server.context
  const load = async () => {
    const sealed: string[] = []
    const { credentialMac } = await loadInstallationKeys(db, recordKeys, platform, {
      credentialsSealed: ({ credentials }) => sealed.push(...credentials),
      webhooksSealed: () => undefined,
    })
    const credential = await findCredential(db, victim)
    return { sealed, isAuthentic: credential && isCredentialAuthentic(credentialMac, credential) }
  }
  await sql`delete from credential where username not in (${server.admin.user}, ${victim}, ${attacker})`.execute(db)
  await sql`update credential set mac = null`.execute(db)
  expect(await load()).toEqual({ sealed: [], isAuthentic: false })
  await sql`delete from wrapped_key where purpose = 'credential-mac'`.execute(db)
  const sealed = [`${server.admin.user} (admin)`, `${attacker} (integration)`, `${victim} (integration)`]
  expect(await load()).toEqual({ sealed, isAuthentic: true })
  expect(await load()).toEqual({ sealed: [], isAuthentic: true })
})
