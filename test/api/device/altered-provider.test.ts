// A writer of the database who makes pawl believe another OpenID provider would bind a phone for any user. Settings are good as an administrator
// stored them, and in no other words (docs/SECURITY-MODEL.md).
import { type RawBuilder, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { HttpReply } from '../../../phone/http.ts'
import type { Prepared } from '../../../phone/v3/state.ts'
import type { TestServer } from '../../helpers/app.ts'
import { expectError, expectRefused } from '../../helpers/expectations.ts'
import { CLIENT_SECRET, type OpenIdServer, REDIRECT_URI, startOpenIdServer, type TestLogin } from '../../helpers/openid.ts'
import { expectOk, registrationOf, startServerWithWorld, type World } from '../../helpers/world.ts'

let bank: OpenIdServer
let forger: OpenIdServer
let server: TestServer
let world: World
beforeAll(async () => {
  bank = await startOpenIdServer({})
  forger = await startOpenIdServer({})
  ;({ server, world } = await startServerWithWorld({
    env: { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' },
  }))
})
afterAll(async () => {
  await world.close()
  bank.close()
  forger.close()
})

const pathOf = (providerId: string) => `/admin/applications/${world.applicationId}/oidc-providers/${providerId}`
const store = async (providerId: string, members: Readonly<Record<string, unknown>> = {}) =>
  expectOk(
    await world.bank.call('PUT', pathOf(providerId), {
      issuer: bank.issuer,
      clientId: 'app',
      clientSecret: CLIENT_SECRET,
      redirectUri: REDIRECT_URI,
      ...members,
    }),
  )
const bind = async (providerId: string, login: TestLogin): Promise<HttpReply> => {
  const layer1 = { type: 'DIRECT', identityAttributes: { method: 'oidc', providerId, ...login } }
  const phone = world.newPhone('3.3')
  server.clock.advance(60_000)
  return phone.send(await phone.prepareActivation('', { layer1 }))
}
/** Changes members of the settings of a provider in its row. */
const alter = (providerId: string, members: Readonly<Record<string, unknown>>) =>
  sql`update oidc_provider set settings = (settings::jsonb || ${JSON.stringify(members)}::jsonb)::text
    where provider_id = ${providerId}`.execute(server.context.db)
/** Makes another row of the one that is there. */
const copy = (providerId: string, credentials: RawBuilder<unknown>) =>
  sql`insert into oidc_provider (application_id, provider_id, settings, credentials, created_at, updated_at)
    select application_id, ${providerId}, settings, ${credentials}, now(), now() from oidc_provider`.execute(server.context.db)
/** A provider of somebody else, at whom the client shows nothing. */
const forged = () => ({ issuer: forger.issuer, clientId: 'open', clientAuthentication: 'none' })
const expectNoRegistration = async (userId: string) =>
  expect(await registrationOf(world, userId).catch(() => undefined)).not.toBe('ACTIVE')

describe('a provider that was altered in the database is none', () => {
  afterEach(() => sql`delete from oidc_provider`.execute(server.context.db))

  test.each<[string, string, () => Promise<unknown>]>([
    ['its issuer and client are another one', 'web', () => alter('web', forged())],
    ['its row is new', 'new', () => copy('new', sql`null`).then(() => alter('new', forged()))],
    [
      'its row is new, with the credentials of another',
      'new',
      () => copy('new', sql`credentials`).then(() => alter('new', forged())),
    ],
  ])('%s', async (_, providerId, change) => {
    await store('web')
    await change()
    const victim = world.newUser()
    expectRefused(await bind(providerId, await forger.logIn(victim, 'open')), 'activation')
    await expectNoRegistration(victim)
    const phone = world.newPhone('3.3')
    expectError(await phone.send((await phone.prepareOidcConfig(providerId)) as Prepared<never>), 400, 'ERR_CONFIG')
    // Nothing was shown to the other one, the secret of the client least of all.
    expect(forger.paths).toEqual([])
    expect(server.log()).toContain('a sealed record was altered in the database')
    expectError(await world.bank.call('GET', pathOf(providerId)), 400, 'ERROR_ADMIN')
  })

  test.each<[string, () => Readonly<Record<string, unknown>>]>([
    ['the bank does not commit any more', () => ({ isCommitted: true })],
    ['it sets a flag', () => ({ flags: ['TRUSTED'] })],
    ['the client secret goes elsewhere', () => ({ tokenEndpoint: `${forger.issuer}/token` })],
  ])('%s', async (_, members) => {
    await store('web', { isCommitted: false })
    await alter('web', members())
    const userId = world.newUser()
    expectRefused(await bind('web', await bank.logIn(userId)), 'activation')
    await expectNoRegistration(userId)
    expect(forger.paths).toEqual([])
  })
})

test('settings that are put back, and settings that are stored anew, are good', async () => {
  await store('web')
  const read = () =>
    sql<{ settings: string }>`select settings from oidc_provider where provider_id = 'web'`.execute(server.context.db)
  const [before] = (await read()).rows
  await alter('web', { issuer: forger.issuer })
  await sql`update oidc_provider set settings = ${before?.settings} where provider_id = 'web'`.execute(server.context.db)
  const [first, second] = [world.newUser(), world.newUser()]
  expectOk(await bind('web', await bank.logIn(first)))
  await alter('web', { issuer: forger.issuer })
  // The secret beside altered settings is not kept: they may say to whom it is shown.
  expectError(
    await world.bank.call('PUT', pathOf('web'), { issuer: bank.issuer, clientId: 'app', redirectUri: REDIRECT_URI }),
    400,
    'ERROR_REQUEST',
  )
  await store('web')
  expectOk(await bind('web', await bank.logIn(second)))
  expect(await registrationOf(world, second)).toBe('ACTIVE')
  await alter('web', { issuer: forger.issuer })
  expectOk(await world.bank.call('DELETE', pathOf('web')))
})
