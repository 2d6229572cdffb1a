// No secret of a run stands in the log, in a dump of the database, or in the files of the data directory (docs/ARCHITECTURE.md,
// "Secrets at rest"). The server logs at level debug while every endpoint is visited; then all secrets are looked for in every spelling.
import { createPrivateKey } from 'node:crypto'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { openDatabase } from '../../src/storage/database/database.ts'
import { createBank } from '../helpers/bank.ts'
import type { Ended, Environment, Installation } from '../helpers/process.ts'
import { PHONE_VERSIONS } from '../helpers/phone-versions.ts'
import { createInstallation, DATABASE_KIND, endEverything, runNode, startPawl } from '../helpers/process.ts'
import type { Search, Secret, Secrets } from '../helpers/secret-search.ts'
import { createSearch, createSecrets, readSecrets, spell, writeSecrets } from '../helpers/secret-search.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'
import { tour } from '../helpers/tour.ts'
import { ACTIVATIONS_OF_TOUR_V4 } from '../helpers/tour-v4.ts'
import { expectOk } from '../helpers/world.ts'

const DATABASE_PASSWORD = 'password-of-the-database'
const GIVEN = { PAWL_ADMIN_PASSWORD: 'given to the administrator' }

// Starts and a walk through everything, and other test files run at the same time.

afterAll(endEverything)

// The embedded database starts with a generated password, PostgreSQL with one that is given.
describe.each([DATABASE_KIND])('on %s', (kind) => {
  let installation: Installation
  let env: Environment
  let shown: string | undefined
  let ended: Ended
  let secrets: readonly Secret[]
  let search: Search

  beforeAll(async () => {
    installation = await createInstallation(kind)
    env = withDatabasePassword(installation.env)
    const server = await startPawl(env, kind === 'embedded' ? {} : GIVEN, { PAWL_LOG_LEVEL: 'debug' })
    shown = /^Administrator: admin, password: (\S+) /m.exec(server.output())?.[1]
    const collected = createSecrets()
    await tour({ url: server.url, adminUser: 'admin', adminPassword: shown ?? GIVEN.PAWL_ADMIN_PASSWORD, secrets: collected })
    ended = await server.end('SIGTERM')
    await collectStored(installation, env, collected)
    const file = join(installation.directory, 'secrets')
    writeSecrets(file, collected.list())
    secrets = readSecrets(file)
    search = createSearch(secrets)
  })

  test('the log holds none, but for the two lines of a first start that show the generated password', () => {
    expect(ended.code).toBe(0)
    const isShown = (line: string): boolean => /^(Administrator|Create an application): /.test(line)
    const lines = `${ended.stdout}${ended.stderr}`.split('\n')
    const log = lines.filter((line) => !isShown(line)).join('\n')
    // Refusals were logged, at the level where most is said.
    expect(log).toContain('authentication failed')
    for (const providerId of ['web', 'keyed']) expect(log).toContain(`OpenID provider ${providerId}: `)
    expect(search('the log', Buffer.from(log))).toEqual([])
    const startText = search('the start text', Buffer.from(lines.filter(isShown).join('\n')))
    const ofAdministrator = ['password', 'credential'].map(
      (what) => expect.stringContaining(`${what} of the administrator`) as unknown,
    )
    expect(shown === undefined).toBe(kind === 'postgresql')
    expect(startText).toEqual(shown === undefined ? [] : ofAdministrator)
  })

  test('a dump of the database holds none', async () => {
    const dump = await runNode(['bin/pawl.mjs', 'admin', 'dump'], env)
    expect(dump).toMatchObject({ code: 0, stderr: '' })
    // Four of each version, those of protocol 4.0, two with an OTP of the bank, and one that asks for another one.
    const activations = 4 * PHONE_VERSIONS.length + ACTIVATIONS_OF_TOUR_V4 * PHONE_ALGORITHMS.length + 4
    expect(dump.stdout).toContain(`.activation, ${activations} rows\n`)
    expect(dump.stdout).toContain(`.activation_upgrade, ${PHONE_ALGORITHMS.length} rows\n`)
    expect(search('the dump', Buffer.from(dump.stdout))).toEqual([])
  })

  test.runIf(kind === 'embedded')('no file of the data directory holds one, and the key file holds the master key alone', () => {
    expect(searchFiles(search, installation.dataDir)).toEqual([])
    expect(readFileSync(join(installation.dataDir, 'master.key'), 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/)
  })

  test.runIf(kind === 'embedded')('a password given to a later start stands nowhere', async () => {
    const server = await startPawl(env, GIVEN, { PAWL_LOG_LEVEL: 'debug' })
    const given = createSecrets()
    given.addText('given password', GIVEN.PAWL_ADMIN_PASSWORD)
    given.addText('wrong password', 'not the one that was given')
    expectOk(await createBank(server.url, `admin:${GIVEN.PAWL_ADMIN_PASSWORD}`).call('GET', '/admin/users'))
    expect((await createBank(server.url, 'admin:not the one that was given').call('GET', '/admin/users')).status).toBe(401)
    const { stdout, stderr } = await server.end('SIGTERM')
    const searchGiven = createSearch([...secrets, ...given.list()])
    expect(searchGiven('all output', Buffer.from(stdout + stderr))).toEqual([])
    expect(searchFiles(searchGiven, installation.dataDir)).toEqual([])
  })

  test.runIf(kind === 'postgresql')('nothing is written beside the database', () => {
    expect(existsSync(installation.dataDir)).toBe(false)
  })

  test('the search bites: every secret is found in every spelling', () => {
    expect(secrets.length).toBeGreaterThan(200)
    for (const secret of secrets) {
      for (const bytes of Object.values(spell(secret))) {
        const planted = Buffer.concat([
          Buffer.from(ended.stdout.slice(-40)),
          Buffer.from('{"level":"debug","key":"'),
          bytes,
          Buffer.from('"}\n'),
        ])
        expect(search('a log with a leak', planted).some((place) => place.startsWith(secret.name))).toBe(true)
      }
    }
  })
})

describe('spellings', () => {
  test('a value is found wherever it stands in a longer one that is encoded as a whole', () => {
    const secrets = createSecrets()
    secrets.addBytes('key', Buffer.from('00112233445566778899aabbccddeeff', 'hex'))
    const [secret] = secrets.list()
    const search = createSearch(secrets.list())
    for (let before = 0; before < 6; before++) {
      for (let after = 0; after < 6; after++) {
        const value = Buffer.concat([Buffer.alloc(before, 7), secret?.bytes ?? Buffer.alloc(0), Buffer.alloc(after, 9)])
        for (const encoding of ['base64', 'base64url', 'hex', 'latin1'] as const) {
          expect(search(encoding, Buffer.from(value.toString(encoding), 'latin1'))).toHaveLength(1)
        }
        expect(search('JSON', Buffer.from(JSON.stringify(value)))).toHaveLength(1)
      }
    }
    expect(search('nothing', Buffer.from('00112233445566778899aabbccddeefe'))).toEqual([])
  })
})

/** Every file but the key file. */
function searchFiles(search: Search, dataDir: string): string[] {
  const files = globSync('**', { cwd: dataDir }).filter((name) => statSync(join(dataDir, name)).isFile())
  expect(files.length).toBeGreaterThan(500)
  return files.filter((name) => name !== 'master.key').flatMap((name) => search(name, readFileSync(join(dataDir, name))))
}

/** A server that trusts its clients takes any password; with one in the URL, that one is looked for as well. */
function withDatabasePassword(env: Environment): Environment {
  if (env['DATABASE_URL'] === undefined) return env
  const url = new URL(env['DATABASE_URL'])
  if (url.password === '') url.password = DATABASE_PASSWORD
  return { ...env, DATABASE_URL: url.toString() }
}

/** Opens every sealed value with the master key: private keys of the server, application secrets, master secrets, counters, tokens. */
async function collectStored(installation: Installation, env: Environment, secrets: Secrets): Promise<void> {
  const databaseUrl = env['DATABASE_URL']
  const recordKeys = createRecordKeys([installation.masterKey()], systemPlatform)
  const { db, close } = await openDatabase({ databaseUrl, dataDir: installation.dataDir, poolSize: 1 })
  try {
    for (const { table, column, key, sealedFor = table, bound } of SEALED) {
      const owner = bound === undefined ? sql`` : sql` join activation o on o.activation_id = t.activation_id`
      const { rows } = await sql<{ keys: string[]; sealed: Buffer; bound: string[] | null }>`
        select array[${sql.raw(key)}] as keys, ${sql.ref(`t.${column}`)} as sealed,
          array_remove(array[${sql.raw(bound ?? 'null')}], null) as bound
        from ${sql.table(table)} t${owner} where ${sql.ref(`t.${column}`)} is not null`.execute(db)
      expect(rows.length, `${table}.${column}`).toBeGreaterThan(0)
      for (const { keys, sealed, bound: texts } of rows) {
        const [one = ''] = keys
        const place = { table: sealedFor, column, row: keys.length === 1 ? one : JSON.stringify(keys) }
        const plaintext = recordKeys.open(bound === undefined || texts === null ? place : { ...place, bound: texts }, sealed)
        secrets.addBytes(`${table}.${column}`, plaintext)
        const parts = column.endsWith('private_key') ? readPrivateKeys(plaintext) : []
        for (const part of parts) secrets.addBytes(`part of ${table}.${column}`, part)
      }
    }
  } finally {
    await close()
  }
  secrets.addBytes('master key', installation.masterKey())
  if (databaseUrl !== undefined) secrets.addText('password of the database', decodeURIComponent(new URL(databaseUrl).password))
}

/** Whose a value is, and the code of a registration that waits for its phone. */
const OWNER = 'o.application_id, o.user_id'
const WAITING = `${OWNER}, case when o.master_secret is null then encode(o.activation_code_hash, 'hex') end`

/** The settings beside a value, as its place has them. */
const SETTINGS = `encode(sha256(convert_to(t.settings, 'UTF8')), 'hex')`

/** `key`: the primary key, with commas, and what else names the place; `bound`: what a value is bound to besides its row. */
const SEALED: readonly { table: string; column: string; key: string; sealedFor?: string; bound?: string }[] = [
  { table: 'wrapped_key', column: 'wrapped_key', key: 't.purpose' },
  { table: 'application_version', column: 'application_secret', key: 't.application_key' },
  { table: 'master_key_pair', column: 'private_key', key: 't.master_key_pair_id' },
  { table: 'activation', column: 'activation_qr_code', key: 't.activation_id', bound: OWNER },
  { table: 'activation', column: 'server_private_key', key: 't.activation_id', bound: WAITING },
  { table: 'activation', column: 'master_secret', key: 't.activation_id', bound: OWNER },
  { table: 'activation', column: 'ctr_data', key: 't.activation_id' },
  // They move to `activation` as they are.
  { table: 'activation_upgrade', column: 'server_private_key', key: 't.activation_id', sealedFor: 'activation', bound: OWNER },
  { table: 'activation_upgrade', column: 'master_secret', key: 't.activation_id', sealedFor: 'activation', bound: OWNER },
  { table: 'activation_upgrade', column: 'ctr_data', key: 't.activation_id', sealedFor: 'activation' },
  { table: 'token', column: 'token_secret', key: 't.token_id', bound: `${OWNER}, t.activation_id, t.factors` },
  { table: 'temporary_key', column: 'private_key', key: 't.temporary_key_id' },
  { table: 'webhook', column: 'secret', key: 't.webhook_id' },
  { table: 'webhook', column: 'previous_secret', key: 't.webhook_id' },
  { table: 'webhook', column: 'basic_credentials', key: 't.webhook_id' },
  { table: 'oidc_provider', column: 'credentials', key: `t.application_id, t.provider_id, ${SETTINGS}` },
]

/** The scalar of an elliptic curve key in PKCS#8, after the seed of an ML-DSA key where there is one; 32 bytes are a secret themselves. */
function readPrivateKeys(stored: Uint8Array): Uint8Array[] {
  if (stored.length === 32) return [stored]
  const isPlain = stored[0] === 0x30 && stored[1] === 0x81 && stored.length === 3 + (stored[2] ?? 0)
  const pkcs8 = isPlain ? stored : stored.subarray(32)
  const { d = '' } = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' }).export({ format: 'jwk' })
  return [...(isPlain ? [] : [stored.subarray(0, 32)]), Buffer.from(d, 'base64url')]
}
