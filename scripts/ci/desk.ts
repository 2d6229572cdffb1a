// Starts a pawl for one check, whose application lets a user have several phones, with an OpenID provider, and a desk. Phones in another
// language ask the desk for their stored rows, which only the process of the server can read.
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { type Db, openInMemory } from '../../src/storage/database/database.ts'
import { migrate } from '../../src/storage/database/migrate.ts'
import { startTestServer } from '../../test/helpers/app.ts'
import { createBank } from '../../test/helpers/bank.ts'
import { setMultiDevice } from '../../test/helpers/devices.ts'
import { CLIENT_SECRET, REDIRECT_URI, startOpenIdServer } from '../../test/helpers/openid.ts'
import { expectOk } from '../../test/helpers/world.ts'

const APPLICATION = 'devices-app'
const LOCAL_PROVIDER = { PAWL_WEBHOOK_ALLOW_HTTP: 'true', PAWL_WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true' }

/** Tables whose rows belong to one phone. Audit rows are left out, because sealing changes them at times when no phone does anything. */
const TABLES = [
  'activation',
  'activation_history',
  'activation_upgrade',
  'config_item',
  'push_registration',
  'registration',
  'token',
]

/**
 * Runs `work` with the settings that pawl.published.Main reads for its group `devices`. `GET /rows/ACTIVATION` of DESK_URL answers the rows, one
 * a line: the table, then JSON. `GET /login/USER` answers a login that binds a phone. Throws when an answer of pawl is not in its description.
 */
export async function withDesk(work: (settings: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const database = await openInMemory()
  await migrate(database.db)
  const provider = await startOpenIdServer(makeKey())
  const server = await startTestServer({ database, env: LOCAL_PROVIDER })
  const desk = createServer((request, response) => {
    const [, what, id = ''] = (request.url ?? '').split('/')
    const answer = what === 'rows' ? readRows(database.db, id) : provider.logIn(decodeURIComponent(id)).then(JSON.stringify)
    answer.then(
      (text) => response.end(text),
      (error: unknown) => fail(response, error),
    )
  })
  try {
    await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve))
    const admin = `${server.admin.user}:${server.admin.password}`
    const bank = createBank(server.url, admin)
    expectOk(await bank.createApplication(APPLICATION))
    expectOk(await setMultiDevice(bank, APPLICATION, true))
    const { issuer } = provider
    const openId = { issuer, clientId: 'app', redirectUri: REDIRECT_URI, clientSecret: CLIENT_SECRET }
    expectOk(await bank.call('PUT', `/admin/applications/${APPLICATION}/oidc-providers/web-bank`, openId))
    await work({
      DEVICES_URL: server.url,
      DEVICES_ADMIN: admin,
      DEVICES_APP: APPLICATION,
      DESK_URL: `http://127.0.0.1:${(desk.address() as AddressInfo).port}`,
    })
  } finally {
    desk.closeAllConnections()
    desk.close()
    provider.close()
    await server.close()
    await database.close()
  }
}

/** Makes the key of the provider's client `keyed`, which this check does not use. */
const makeKey = (): object => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
  kid: 'k1',
  alg: 'ES256',
  use: 'sig',
})

function fail(response: ServerResponse, error: unknown): void {
  response.statusCode = 500
  response.end(String(error))
}

async function readRows(db: Db, activationId: string): Promise<string> {
  const parts = TABLES.map(
    (table) => sql`select ${sql.lit(table)} || ' ' || to_jsonb(t)::text as line from ${sql.table(table)} t
      where activation_id = ${activationId}`,
  )
  const { rows } = await sql<{ line: string }>`${sql.join(parts, sql` union all `)} order by 1`.execute(db)
  return rows.map(({ line }) => line).join('\n')
}
