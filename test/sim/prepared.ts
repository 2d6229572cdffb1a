// Prepares the beginning of every run: a database with an application, its webhooks, a template, and bound phones of all versions. It is made
// once, because to make it takes longer than a run.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite, types } from '@electric-sql/pglite'
import { Kysely, PGliteDialect } from 'kysely'
import { type PhoneVersion, random } from '../../phone/v3/crypto.ts'
import { member } from '../../phone/http.ts'
import { PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import { fromJson, toJson } from '../../phone/snapshot.ts'
import type { AppConfiguration, PhoneState } from '../../phone/v3/state.ts'
import type { V4AppConfiguration, V4PhoneState } from '../../phone/v4/state.ts'
import type { Database, Pool } from '../../src/storage/database/database.ts'
import type { Schema } from '../../src/storage/database/schema.ts'
import { expectOk, openWorld } from '../helpers/world.ts'
import { openPhonesV4 } from '../helpers/world-v4.ts'
import { createChance } from './chance.ts'
import { activationCodeOf } from './phones.ts'
import { createIds, startServer } from './server.ts'

/** A phone that is bound, with its user. */
export type PreparedPhone = { readonly userId: string } & (
  | { readonly version: PhoneVersion; readonly state: PhoneState }
  | { readonly version: '4.0'; readonly state: V4PhoneState }
)

export interface Prepared {
  readonly masterKey: Uint8Array
  /** `user:password` */
  readonly admin: string
  readonly app: AppConfiguration
  readonly appV4: V4AppConfiguration
  readonly phones: readonly PreparedPhone[]
  /** The time at the end of the preparation, in milliseconds since 1970. */
  readonly at: number
}

export const TEMPLATE = 'simulated-payment'

/** Makes the prepared files in `folder`. Needs the template of the tests (test/helpers/global-setup.ts). */
export async function prepare(folder: string, template: Blob): Promise<void> {
  const parsers = { [types.INT8]: (value: string) => value, [types.BYTEA]: (value: string) => Buffer.from(value.slice(2), 'hex') }
  const pglite = await PGlite.create({ loadDataDir: template, parsers, postgresqlconf: ['shared_buffers=16MB'] })
  const db = new Kysely<Schema>({ dialect: new PGliteDialect({ pglite }) }) as Pool
  const database: Database = { db, kind: 'embedded', location: 'memory', close: async () => undefined }
  const masterKey = random(32)
  const at = Date.now()
  // The server's ids are the same each time, because the order in which some statements work depends on them.
  const platform = { now: () => at, monotonic: () => at, ...createIds(createChance(PREPARED_SEED)) }
  const { app, context } = await startServer(database, { masterKey, platform })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const admin = `admin:${String(await context.createFirstAdmin())}`
  const world = await openWorld({ urls: [url], admin, advance: () => undefined, close: () => app.close() })
  const phonesV4 = await openPhonesV4(world)
  for (const kind of ['OPERATION', 'ACTIVATION']) {
    const webhook = {
      application: world.applicationId,
      name: kind,
      kind,
      url: `https://bank.example/${kind}`,
      attributes: ['status'],
    }
    expectOk(await world.bank.call('POST', '/admin/webhooks', kind === 'OPERATION' ? webhook : { ...webhook, attributes: [] }))
  }
  expectOk(await world.bank.call('POST', '/admin/templates', PAYMENT_TEMPLATE))
  expectOk(await world.bank.call('PATCH', `/admin/applications/${world.applicationId}`, { isMultiDevice: true }))
  const phones: PreparedPhone[] = []
  const versions = [...PHONE_VERSIONS, '4.0', '4.0'] as const
  for (const [index, version] of versions.entries()) {
    const userId = `user-${index < versions.length - PHONES_OF_ONE ? index : 'of-several'}`
    const { json } = expectOk(await world.bank.call('POST', '/v2/registrations', { userId }))
    const phone = version === '4.0' ? phonesV4.newPhone('EC_P384') : world.newPhone(version)
    await phone.activate(activationCodeOf(json))
    expectOk(await world.bank.call('POST', `/v2/registrations/${String(member(json, 'registrationId'))}/commit`, {}))
    if ('prepareConfirm' in phone) await phone.exchange(phone.prepareConfirm(true))
    phones.push({ userId, version, state: phone.state } as PreparedPhone)
  }
  const prepared: Prepared = { masterKey, admin, app: world.app, appV4: phonesV4.app, phones, at }
  await pglite.query('checkpoint')
  const dump = await pglite.dumpDataDir('none')
  writeFileSync(join(folder, 'simulated.tar'), Buffer.from(await dump.arrayBuffer()))
  writeFileSync(join(folder, 'simulated.json'), JSON.stringify(toJson(prepared)))
  await world.close()
  await context.close()
  await pglite.close()
}

/** Reads the files of `prepare`. The phones are new objects each time. */
export const readPrepared = (folder: string): Prepared =>
  fromJson(JSON.parse(readFileSync(join(folder, 'simulated.json'), 'utf8'))) as Prepared

const PREPARED_SEED = 1
/** The number of phones, the last ones, that belong to one user. They are of 3.x and of 4.0. */
const PHONES_OF_ONE = 3
const PAYMENT_TEMPLATE = {
  templateName: TEMPLATE,
  operationType: 'authorize_payment',
  dataTemplate: 'A2',
  signatureType: ['possession_knowledge', 'possession_biometry'],
  maxFailureCount: 3,
  expiration: 300,
  texts: { en: { title: 'Payment', message: 'Please confirm the payment', attributes: [] } },
}
