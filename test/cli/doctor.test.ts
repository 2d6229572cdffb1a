// pawl doctor: an installation in order, and broken ones, of which it names what is wrong and says what to do.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { judgeApplications } from '../../cli/doctor/content.ts'
import type { Finding, Instruments } from '../../cli/doctor/finding.ts'
import { examine } from '../../cli/doctor/doctor.ts'
import { loadInstallationKeys } from '../../src/domain/installation-keys.ts'
import { createRecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { StartError } from '../../src/lib/errors.ts'
import { parsePem } from '../../src/lib/pem.ts'
import { systemPlatform as platform } from '../../src/lib/platform.ts'
import { insertApplication } from '../../src/storage/application/applications.ts'
import { type Db, type Database, inTransaction, openDatabase } from '../../src/storage/database/database.ts'
import { DirectoryInUse } from '../../src/storage/database/directory-lock.ts'
import { insertPinnedCertificate } from '../../src/storage/pinning/pinning.ts'
import { insertWebhook } from '../../src/storage/webhook/webhooks.ts'
import { openMigratedInMemory } from '../helpers/app.ts'
import { createCertificate } from '../helpers/certificates.ts'
import { runCli } from '../helpers/cli.ts'
import { findQuietPort } from '../helpers/ports.ts'
import { startApns, startFcm } from '../helpers/push-providers.ts'
import { expectOk, startWorld, type World } from '../helpers/world.ts'

const KEY = Buffer.alloc(32, 7)
const directory = mkdtempSync(join(tmpdir(), 'pawl-doctor-'))
const dataDir = join(directory, 'data')
const servers: { close: () => unknown }[] = []
let database: Database
let healthy: Instruments

/** Answers with these by path: status and body. */
async function serve(answers: Readonly<Record<string, readonly [number, string]>>): Promise<string> {
  const server = createServer((request, response) => {
    const [status, body] = answers[request.url ?? ''] ?? [404, '{}']
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(body)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const READY = { '/health/ready': [200, '{}'] } as const
const PHONES = { '/pa/v3/status': [200, '{"status":"OK","responseObject":{"serverTime":1}}'] } as const
/** An address of the public kind, whose requests go to this machine. */
const atPort = (url: string): Record<string, string> => ({ PAWL_PORT: new URL(url).port })

beforeAll(async () => {
  mkdirSync(dataDir, { mode: 0o700 })
  writeFileSync(join(dataDir, 'master.key'), KEY.toString('base64'), { mode: 0o600 })
  database = await openMigratedInMemory()
  await loadInstallationKeys(database.db, createRecordKeys([KEY], platform), platform)
  await inTransaction(database.db, async (tx) => void (await insertApplication(tx, 'app', null, new Date())))
  const server = await serve({ ...READY, ...PHONES })
  healthy = {
    env: { PAWL_DATA_DIR: dataDir, PAWL_MASTER_KEY: KEY.toString('base64'), ...atPort(server) },
    now: Date.now,
    open: async () => ({ ...database, close: async () => undefined }),
    findPooler: async () => ({ pooler: 'none', hasTimeLimit: true }),
    writableBytes: async () => 2 ** 40,
    connect: async () => undefined,
    readCertificate: async () => ({ expiresAt: new Date(Date.now() + 90 * DAY_MS), chainProblem: undefined }),
  }
})
afterAll(async () => {
  for (const server of servers) server.close()
  await database.close()
  rmSync(directory, { recursive: true, force: true })
})

const DAY_MS = 86_400_000

const broken = (findings: readonly Finding[]): readonly Finding[] => findings.filter(({ state }) => state === 'fault')

/** What is found while the database has these rows. */
async function findWith(work: (db: Db) => Promise<unknown>, change: Partial<Instruments> = {}): Promise<readonly Finding[]> {
  await work(database.db)
  try {
    return await examine({ ...healthy, ...change })
  } finally {
    for (const table of ['webhook', 'pinned_certificate', 'pinned_domain', 'record_binding', 'oidc_provider'])
      await sql`delete from ${sql.table(table)}`.execute(database.db)
  }
}

const withEnv = (
  env: Readonly<Record<string, string | undefined>>,
  change: Partial<Instruments> = {},
): Promise<readonly Finding[]> => examine({ ...healthy, ...change, env: { ...healthy.env, ...env } })

const insertHook = (db: Db) =>
  insertWebhook(db, {
    webhookId: 'a-webhook',
    applicationId: 'app',
    name: 'hook',
    kind: 'OPERATION',
    url: 'https://bank.example/pawl',
    attributes: ['status'],
    secret: KEY,
    basicCredentials: null,
    basicMac: null,
    isEnabled: true,
    createdAt: new Date(),
  })

const pin = (db: Db, expiresAt: Date, domain = 'api.bank.example', pem?: string) =>
  insertPinnedCertificate(db, {
    applicationId: 'app',
    domain,
    port: 443,
    fingerprint: KEY,
    expiresAt,
    source: 'fingerprint',
    certificate: (pem && parsePem(pem)) || null,
    createdAt: new Date(0),
  })

const insertProvider = (db: Db) =>
  sql`insert into oidc_provider (application_id, provider_id, settings, created_at, updated_at)
    values ('app', 'web', '{"issuer":"https://login.bank.example"}', now(), now())`.execute(db)

test('an installation in order has nothing broken, and every check is there', async () => {
  const findings = await examine(healthy)
  expect(broken(findings)).toEqual([])
  expect(findings.filter(({ state }) => state === 'skipped')).toEqual([])
  const checks = [
    'settings',
    'key file',
    'disk',
    'database',
    'clock',
    'migrations',
    'keys',
    'records',
    'rights',
    'applications',
    'certificates',
    'webhooks',
    'logins',
  ]
  expect(findings.map(({ check }) => check)).toEqual([...checks, 'server', 'public URL'])
})

test('providers of pushes that take the credentials are in order', async () => {
  const [apns, fcm] = [await startApns(), await startFcm()]
  apns.answerWith(() => ({ status: 400, json: { reason: 'BadDeviceToken' } }))
  try {
    const findings = await withEnv({ ...apns.env, ...fcm.env })
    const says = findings.filter(({ check }) => check === 'push').map((finding) => `${finding.state}: ${finding.says}`)
    expect(says).toEqual(['ok: Apple takes the credentials', 'ok: Google takes the credentials'])
    // The push that is sent to find out is one for no phone.
    expect(apns.received.map(({ token }) => token)).toEqual(['0'.repeat(64)])
    expect(fcm.received).toEqual([])
  } finally {
    await Promise.all([apns.close(), fcm.close()])
  }
})

test.each([
  [['api.bank.example'], ['there is one', 'one is pinned, for one domain']],
  [
    ['api.bank.example', 'api.bank.example'],
    ['there are 2', '2 are pinned, for one domain'],
  ],
  [
    ['api.bank.example', 'www.bank.example'],
    ['there are 2', '2 are pinned, for 2 domains'],
  ],
])('applications and pins of %j are counted in words', (domains, says) => {
  const now = Date.now()
  const pins = domains.map((domain) => ({ app: 'app', domain, expiresAt: new Date(now + 60 * DAY_MS) }))
  expect(judgeApplications(domains, pins, now).map((finding) => finding.says)).toEqual(says)
})

test('who may derive keys is said by name', async () => {
  const entitled = (username: string, rights: string) =>
    sql`insert into credential (username, role, salt, rights, created_at)
      values (${username}, 'integration', ${KEY}, ${rights}, now())`
  const says = async (): Promise<string | undefined> => (await examine(healthy)).find(({ check }) => check === 'rights')?.says
  expect(await says()).toBe('no credential may derive keys or open envelopes of an application')
  await entitled('web', 'envelopes:application,keys:derive').execute(database.db)
  await entitled('tier', 'keys:derive').execute(database.db)
  try {
    expect(await says()).toBe('who may derive keys: tier, web; who may open envelopes of an application: web')
  } finally {
    await sql`delete from credential`.execute(database.db)
  }
})

/** Files of TLS of the internal listener; the certificate ends after `days`, the authorities of callers after theirs. */
function internalTls({
  days = 60,
  authorityDays = [60],
}: {
  readonly days?: number
  readonly authorityDays?: readonly number[]
}) {
  const folder = mkdtempSync(join(directory, 'tls-'))
  const { pem, privateKeyPem } = createCertificate(['IP:127.0.0.1'], { days })
  const authorities = authorityDays.map((left) => createCertificate([], { days: left }).pem)
  const env = {
    PAWL_INTERNAL_PORT: '0',
    PAWL_INTERNAL_TLS_CERTIFICATE: join(folder, 'server.pem'),
    PAWL_INTERNAL_TLS_KEY: join(folder, 'server.key'),
    PAWL_INTERNAL_TLS_CLIENT_CA: join(folder, 'clients.pem'),
  }
  writeFileSync(env.PAWL_INTERNAL_TLS_CERTIFICATE, pem)
  writeFileSync(env.PAWL_INTERNAL_TLS_KEY, privateKeyPem)
  writeFileSync(env.PAWL_INTERNAL_TLS_CLIENT_CA, authorities.join(''))
  return { env, pem, privateKeyPem }
}

test('every check of a database that is not opened is said to be skipped', async () => {
  const open = (): Promise<never> => Promise.reject(new StartError('none'))
  const inOrder = await examine(healthy)
  const after = await examine({ ...healthy, open })
  expect(after.map(({ check }) => check).toSorted()).toEqual(inOrder.map(({ check }) => check).toSorted())
})

test('the disk of a folder that is not there is that where the first start makes it', async () => {
  const asked: string[] = []
  const env = { ...healthy.env, PAWL_DATA_DIR: join(directory, 'not', 'there') }
  await examine({ ...healthy, env, writableBytes: async (path) => void asked.push(path) })
  expect(asked).toEqual([directory])
})

test('a file system that does not tell its room is no full disk', async () => {
  const findings = await examine({ ...healthy, writableBytes: async () => undefined })
  expect(findings.find(({ check }) => check === 'disk')).toMatchObject({
    state: 'skipped',
    says: expect.stringContaining('does not tell') as unknown,
  })
})

test('files of TLS that hold for long are in order', async () => {
  const findings = await withEnv(internalTls({ authorityDays: [1, 60] }).env)
  expect(findings.filter(({ check }) => check === 'internal TLS').map(({ state }) => state)).toEqual(['ok', 'ok'])
})

/** What was found, when the providers are closed. */
async function thenClose(
  finding: Promise<readonly Finding[]>,
  ...providers: readonly { readonly close: () => Promise<void> }[]
): Promise<readonly Finding[]> {
  const findings = await finding
  for (const { close } of providers) await close()
  return findings
}

interface Broken {
  readonly check: string
  readonly says: RegExp
  readonly todo: RegExp
  readonly find: () => Promise<readonly Finding[]>
  /** By default what is broken. */
  readonly state?: Finding['state']
}

const SET_UPS: Readonly<Record<string, Broken>> = {
  'a setting that nobody knows': {
    check: 'settings',
    says: /^PAWL_PROT: no such setting, PAWL_PORT is the nearest/,
    todo: /CONFIG\.md/,
    find: () => withEnv({ PAWL_PROT: '8080' }),
  },
  'PostgreSQL without a master key': {
    check: 'settings',
    says: /^PAWL_MASTER_KEY: needed together with DATABASE_URL/,
    todo: /CONFIG\.md/,
    find: () => withEnv({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_MASTER_KEY: undefined }),
  },
  'a mode of TLS that there is not': {
    check: 'settings',
    says: /^DATABASE_URL: has an option sslmode that is none of disable, no-verify, prefer, require, verify-ca, verify-full$/,
    todo: /CONFIG\.md/,
    find: () => withEnv({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl?sslmode=banana' }),
  },
  'a file of templates with a fault': {
    check: 'templates',
    says: /template 1 "half": operationType/,
    todo: /mend the file/,
    find: () => {
      const file = join(directory, 'templates.json')
      writeFileSync(file, '[{"templateName":"half"}]')
      return withEnv({ PAWL_TEMPLATES_FILE: file })
    },
  },
  'a key file that others may read': {
    check: 'key file',
    says: /others may read .*master\.key/,
    todo: /^chmod 600 .*master\.key/,
    find: async () => {
      const path = join(dataDir, 'master.key')
      chmodSync(path, 0o644)
      return examine(healthy).finally(() => chmodSync(path, 0o600))
    },
  },
  'a key file that is gone': {
    check: 'key file',
    says: /master\.key is not there/,
    todo: /backup/,
    find: () => {
      const empty = join(directory, 'empty')
      mkdirSync(empty)
      return withEnv(
        { PAWL_DATA_DIR: empty, PAWL_MASTER_KEY: undefined },
        { open: async () => Promise.reject(new StartError('none')) },
      )
    },
  },
  'a disk that is full': {
    check: 'disk',
    says: /^0\.0 GiB are free/,
    todo: /make room now/,
    find: () => examine({ ...healthy, writableBytes: async () => 4096 }),
  },
  'a disk that has become read only': {
    check: 'disk',
    says: /^EROFS: read-only file system/,
    todo: /^look at the disk/,
    find: () =>
      examine({ ...healthy, writableBytes: () => Promise.reject(new Error("EROFS: read-only file system, utime '/data'")) }),
  },
  'a database that does not answer': {
    check: 'database',
    says: /ECONNREFUSED/,
    todo: /^check DATABASE_URL, and that the database serves$/,
    find: async () => {
      const url = `postgres://pawl@127.0.0.1:${await findQuietPort()}/pawl`
      const open: Instruments['open'] = ({ config: { dataDir: path }, secrets: { databaseUrl } }) =>
        openDatabase({ databaseUrl, dataDir: path, poolSize: 1 })
      return withEnv({ DATABASE_URL: url }, { open })
    },
  },
  'a pooler that pawl is not told of': {
    check: 'pooler',
    says: /^PAWL_DATABASE_POOLER is none, and a pooler gives a server to each transaction/,
    todo: /^set PAWL_DATABASE_POOLER=transaction/,
    find: () =>
      withEnv(
        { DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl' },
        { findPooler: async () => ({ pooler: 'transaction', hasTimeLimit: true }) },
      ),
  },
  'a pooler that is not there': {
    check: 'pooler',
    state: 'warning',
    says: /^PAWL_DATABASE_POOLER is transaction, and nothing pools/,
    todo: /leave it out/,
    find: () => withEnv({ DATABASE_URL: 'postgres://pawl@127.0.0.1:1/pawl', PAWL_DATABASE_POOLER: 'transaction' }),
  },
  'a clock that is wrong': {
    check: 'clock',
    says: /60\.\d s apart/,
    todo: /NTP/,
    find: () => examine({ ...healthy, now: () => Date.now() + 60_500 }),
  },
  'a migration that is missing': {
    check: 'migrations',
    says: /lacks 1 migration|lacks migration/,
    todo: /pawl migrate/,
    find: async () => {
      const last = await sql<{ name: string; timestamp: string }>`
        delete from kysely_migration where name = (select max(name) from kysely_migration) returning name, timestamp`.execute(
        database.db,
      )
      const [row] = last.rows
      try {
        return await examine(healthy)
      } finally {
        await sql`insert into kysely_migration (name, timestamp) values (${row?.name}, ${row?.timestamp})`.execute(database.db)
      }
    },
  },
  'a master key that is another one': {
    check: 'keys',
    says: /not the one this database was written with/,
    todo: /PAWL_MASTER_KEY/,
    find: () => withEnv({ PAWL_MASTER_KEY: Buffer.alloc(32, 8).toString('base64') }),
  },
  'a new master key under which nothing was sealed anew': {
    check: 'keys',
    state: 'warning',
    says: /what was sealed before is not under the first master key, [0-9a-f]{8}$/,
    todo: /pawl key rotate/,
    find: () => withEnv({ PAWL_MASTER_KEY: [Buffer.alloc(32, 8), KEY].map((key) => key.toString('base64')).join(',') }),
  },
  'records of the version before': {
    check: 'records',
    state: 'warning',
    says: /^0 rows have sealed records that are bound to no user$/,
    todo: /^pawl key bind, once no process of the version before runs/,
    find: () => findWith((db) => sql`insert into record_binding (stage) values ('OPEN')`.execute(db)),
  },
  'records that servers seal anew': {
    check: 'records',
    state: 'warning',
    says: /bound to no user; servers seal them anew$/,
    todo: /look again later/,
    find: () => findWith((db) => sql`insert into record_binding (stage) values ('BEGUN')`.execute(db)),
  },
  'a master key that may be one too many': {
    check: 'keys',
    state: 'warning',
    says: /there are 2 master keys, and [0-9a-f]{8} seals$/,
    todo: /pawl key list/,
    find: () => withEnv({ PAWL_MASTER_KEY: [KEY, Buffer.alloc(32, 8)].map((key) => key.toString('base64')).join(',') }),
  },
  'an authorization server that gives no keys': {
    check: 'token keys',
    says: /answered with status 404: look at the path$/,
    todo: /PAWL_JWT_JWKS_URL/,
    find: async () => {
      const tokens = { PAWL_JWT_ISSUER: 'https://login.bank.example', PAWL_JWT_AUDIENCE: 'pawl' }
      return withEnv({ ...tokens, PAWL_JWT_JWKS_URL: `${await serve({})}/jwks` })
    },
  },
  'a pinned certificate that has ended': {
    check: 'certificates',
    says: /api\.bank\.example \(app\) ends 2001-/,
    todo: /pawl certificate fetch api\.bank\.example --app app/,
    find: () => findWith((db) => pin(db, new Date('2001-01-01'))),
  },
  'a pinned certificate that soon ends': {
    check: 'certificates',
    state: 'warning',
    says: /api\.bank\.example \(app\) ends /,
    todo: /pawl certificate fetch/,
    find: () => findWith((db) => pin(db, new Date(Date.now() + 3 * DAY_MS))),
  },
  'a pinned wildcard that soon ends': {
    check: 'certificates',
    state: 'warning',
    says: /\*\.bank\.example \(app\) ends /,
    todo: /pawl certificate add-pem '\*\.bank\.example' FILE --app app/,
    find: () => findWith((db) => pin(db, new Date(Date.now() + 3 * DAY_MS), '*.bank.example')),
  },
  'a pin that apps do not find': {
    check: 'certificates',
    state: 'warning',
    says: /api\.bank\.example \(app\) is not found: .* which is "\*\.bank\.example"$/,
    todo: /under its common name/,
    find: () => {
      const { pem } = createCertificate(['DNS:*.bank.example'], { commonName: '*.bank.example' })
      return findWith((db) => pin(db, new Date(Date.now() + 60 * DAY_MS), 'api.bank.example', pem))
    },
  },
  'a webhook that was switched off': {
    check: 'webhooks',
    says: /"hook" \(a-webhook\) was switched off: HTTP 410/,
    todo: /pawl webhook change a-webhook --enabled/,
    find: () =>
      findWith(async (db) => {
        await insertHook(db)
        await sql`update webhook set is_enabled = false, disabled_reason = 'HTTP 410'`.execute(db)
      }),
  },
  'a receiver that takes no connection': {
    check: 'webhooks',
    says: /bank\.example takes no connection \(connect ECONNREFUSED\)/,
    todo: /start the receiver/,
    find: () => findWith(insertHook, { connect: async () => Promise.reject(new Error('connect ECONNREFUSED')) }),
  },
  'a receiver whose address somebody altered': {
    check: 'webhooks',
    says: /^"hook" \(a-webhook\) has no address: somebody altered it in the database$/,
    todo: /^pawl webhook change a-webhook --to gives it one$/,
    find: () =>
      findWith(async (db) => {
        await insertHook(db)
        await sql`update webhook set url = 'nowhere'`.execute(db)
      }),
  },
  'an OpenID provider whose settings somebody altered': {
    check: 'logins',
    says: /^web of app has no issuer: somebody altered it in the database$/,
    todo: /^pawl oidc set web --app app stores it again/,
    find: () =>
      findWith(async (db) => {
        await insertProvider(db)
        await sql`update oidc_provider set settings = '{"issuer'`.execute(db)
      }),
  },
  'a table that cannot be read': {
    check: 'applications',
    says: /^this could not be looked at: /,
    todo: /rights of the role/,
    find: async () => {
      await sql`alter table pinned_certificate rename to lost`.execute(database.db)
      try {
        return await examine(healthy)
      } finally {
        await sql`alter table lost rename to pinned_certificate`.execute(database.db)
      }
    },
  },
  'an OpenID provider that takes no connection': {
    check: 'logins',
    says: /^web of app: login\.bank\.example takes no connection \(connect ECONNREFUSED\)$/,
    todo: /reach the provider/,
    find: () => findWith(insertProvider, { connect: async () => Promise.reject(new Error('connect ECONNREFUSED')) }),
  },
  'credentials that Apple does not take': {
    check: 'push',
    says: /^Apple does not take the credentials: HTTP 403 InvalidProviderToken$/,
    todo: /PAWL_APNS_KEY_ID/,
    find: async () => {
      const apns = await startApns()
      return thenClose(withEnv({ ...apns.env, PAWL_APNS_TEAM_ID: 'ANOTHER000' }), apns)
    },
  },
  'an account that Google gives no access token': {
    check: 'push',
    says: /^Google does not take the credentials: no access token: 127\.0\.0\.1:\d+ answered HTTP 400 invalid_grant$/,
    todo: /PAWL_FCM_SERVICE_ACCOUNT/,
    find: async () => {
      const fcm = await startFcm()
      fcm.answerTokenWith({ status: 400, json: { error: 'invalid_grant' } })
      return thenClose(withEnv(fcm.env), fcm)
    },
  },
  'a key for pushes that is none': {
    check: 'push',
    says: /^PAWL_APNS_KEY: not a private key of P-256$/,
    todo: /PUSH\.md/,
    find: async () => {
      const [apns, fcm] = [await startApns(), await startFcm()]
      const { private_key: key } = JSON.parse(fcm.env['PAWL_FCM_SERVICE_ACCOUNT'] ?? '') as { private_key: string }
      return thenClose(withEnv({ ...apns.env, PAWL_APNS_KEY: key }), apns, fcm)
    },
  },
  'a provider of pushes that is not reached': {
    check: 'push',
    says: /refuses connections/,
    todo: /let this machine reach it/,
    find: async () => {
      const apns = await startApns()
      await apns.close()
      return withEnv(apns.env)
    },
  },
  'no server': {
    check: 'server',
    state: 'warning',
    says: /nothing answers at http:\/\/127/,
    todo: /pawl serve/,
    find: async () => withEnv({ PAWL_PORT: String(await findQuietPort()) }),
  },
  'another program on the port': {
    check: 'server',
    says: /is no server of pawl \(HTTP 404\)/,
    todo: /PAWL_PORT/,
    find: async () => withEnv(atPort(await serve({}))),
  },
  'a server whose database is away': {
    check: 'server',
    says: /is not ready/,
    todo: /its log/,
    find: async () => withEnv(atPort(await serve({ '/health/ready': [503, '{}'] }))),
  },
  'a server whose clock is wrong': {
    check: 'server',
    says: /is not ready: the clock of this process is 69120000 s ahead of that of the database$/,
    todo: /its log/,
    find: async () => {
      const reason = 'the clock of this process is 69120000 s ahead of that of the database'
      return withEnv(atPort(await serve({ '/health/ready': [503, JSON.stringify({ status: 'UNAVAILABLE', reason })] })))
    },
  },
  'no public URL': {
    check: 'public URL',
    state: 'warning',
    says: /PAWL_PUBLIC_URL is not set/,
    todo: /what phones call/,
    find: () => examine(healthy),
  },
  'a public URL that leads nowhere': {
    check: 'public URL',
    says: /does not answer \(.*ECONNREFUSED/,
    todo: /balancer/,
    find: async () => withEnv({ PAWL_PUBLIC_URL: `http://127.0.0.1:${await findQuietPort()}` }),
  },
  'a public URL that leads to something else': {
    check: 'public URL',
    says: /not as pawl \(HTTP 404\)/,
    todo: /paths unchanged/,
    find: async () => withEnv({ PAWL_PUBLIC_URL: await serve({}) }),
  },
  "a public URL that has the bank's API": {
    check: 'exposure',
    says: /the bank's API answers at http/,
    todo: /PAWL_INTERNAL_PORT/,
    find: async () => withEnv({ PAWL_PUBLIC_URL: await serve({ ...PHONES, '/admin/applications': [401, '{}'] }) }),
  },
  'a public URL without TLS': {
    check: 'TLS',
    says: /in the clear/,
    todo: /https/,
    find: async () => withEnv({ PAWL_PUBLIC_URL: await serve(PHONES) }),
  },
  'a certificate of the internal listener that ends soon': {
    check: 'internal TLS',
    state: 'warning',
    says: /^the certificate of the internal listener ends 20/,
    todo: /^renew .*server\.pem/,
    find: () => withEnv(internalTls({ days: 13 }).env),
  },
  'a certificate of the internal listener that has ended': {
    check: 'internal TLS',
    says: /^the certificate of the internal listener ends 20/,
    todo: /^renew .*server\.pem/,
    find: () => withEnv(internalTls({ days: 30 }).env, { now: () => Date.now() + 31 * DAY_MS }),
  },
  'an authority of callers that has ended': {
    check: 'internal TLS',
    says: /^the last authority for certificates of callers ends 20/,
    todo: /^renew .*clients\.pem/,
    find: () => withEnv(internalTls({ days: 60, authorityDays: [20, 30] }).env, { now: () => Date.now() + 31 * DAY_MS }),
  },
  'a key that is not that of the certificate': {
    check: 'internal TLS',
    says: /^PAWL_INTERNAL_TLS_KEY: .* is not the key of PAWL_INTERNAL_TLS_CERTIFICATE/,
    todo: /a start with it is refused/,
    find: () => {
      const { env } = internalTls({})
      writeFileSync(env.PAWL_INTERNAL_TLS_KEY, createCertificate([]).privateKeyPem)
      return withEnv(env)
    },
  },
  'a server whose certificate this machine does not take': {
    check: 'server',
    says: /^https:.* and this command do not take each other's certificate \(self-signed certificate/,
    todo: /NODE_EXTRA_CA_CERTS/,
    find: async () => {
      const { env, pem, privateKeyPem } = internalTls({})
      const server = createTlsServer({ cert: pem, key: privateKeyPem }, (_request, response) => response.end())
      servers.push(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      return withEnv({
        ...env,
        PAWL_INTERNAL_PORT: String(port),
        PAWL_CLIENT_CERTIFICATE: env.PAWL_INTERNAL_TLS_CERTIFICATE,
        PAWL_CLIENT_KEY: env.PAWL_INTERNAL_TLS_KEY,
      })
    },
  },
  'a certificate that has ended': {
    check: 'TLS',
    says: /127\.0\.0\.1 ends 2001-/,
    todo: /renew/,
    find: async () =>
      withEnv(
        { PAWL_PUBLIC_URL: `https://127.0.0.1:${await findQuietPort()}` },
        { readCertificate: async () => ({ expiresAt: new Date('2001-01-01'), chainProblem: undefined }) },
      ),
  },
}

describe('a broken set-up is named, with what to do', () => {
  test.each(Object.entries(SET_UPS))('%s', async (_name, { check, state = 'fault', says, todo, find }) => {
    const found = (await find()).filter((finding) => finding.check === check && finding.state === state)
    expect(found).toEqual([
      { check, state, says: expect.stringMatching(says) as unknown, todo: expect.stringMatching(todo) as unknown },
    ])
  })
})

test.each(['127.0.0.1', '[::1]', 'localhost'])(
  'the certificate at %s is looked at, whether that is a name or an address',
  async (host) => {
    const { pem, privateKeyPem } = createCertificate([], { commonName: 'nobody' })
    const server = createTlsServer({ cert: pem, key: privateKeyPem }, (request, response) => response.end(request.url))
    await new Promise<void>((resolve) => server.listen(0, host.replace(/^\[(.*)\]$/, '$1'), resolve))
    const { port } = server.address() as AddressInfo
    const warnings: Error[] = []
    const keep = (warning: Error): number => warnings.push(warning)
    process.on('warning', keep)
    const env = { PAWL_DATA_DIR: join(directory, 'nowhere'), PAWL_PUBLIC_URL: `https://${host}:${port}`, PAWL_PORT: '1' }
    const { stdout, stderr } = await runCli(['doctor', '--json'], env)
    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] }
    const says = `the certificate of ${host} does not verify: DEPTH_ZERO_SELF_SIGNED_CERT`
    expect(findings.filter(({ check }) => check === 'TLS')).toEqual([
      { check: 'TLS', state: 'fault', says, todo: 'send the whole chain, for this name' },
    ])
    // What Node has to say of addresses comes a turn later.
    await new Promise((resolve) => setTimeout(resolve, 20))
    process.off('warning', keep)
    server.close()
    expect([warnings, stderr]).toEqual([[], 'looking at settings, database, network and receivers\n'])
  },
)

describe('an embedded database that a server has', () => {
  const open = (): Promise<never> => Promise.reject(new DirectoryInUse(dataDir))
  const find = (world: World, env: Readonly<Record<string, string>>) => withEnv({ ...atPort(world.url), ...env }, { open })
  const namesOf = (findings: readonly Finding[], state: Finding['state']) =>
    findings.filter((finding) => finding.state === state).map(({ check }) => check)

  test('is asked of the server, with the credential of the environment', async () => {
    const world = await startWorld()
    try {
      const { credential = '', call } = world.bank
      const hook = { application: 'test-app', kind: 'OPERATION', name: 'hook', url: 'https://bank.example/pawl', attributes: [] }
      expectOk(await call('POST', '/admin/webhooks', hook))
      const asked = await find(world, { PAWL_ADMIN: credential })
      expect([broken(asked), namesOf(asked, 'skipped')]).toEqual([[], []])
      expect(namesOf(asked, 'ok')).toEqual(expect.arrayContaining(['database', 'migrations', 'keys', 'applications']))
      const provider = {
        issuer: 'https://login.bank.example',
        clientId: 'c',
        clientAuthentication: 'none',
        redirectUri: 'app:/oidc',
      }
      expectOk(await call('PUT', '/admin/applications/test-app/oidc-providers/web', provider))
      const pinned = {
        domain: 'api.bank.example',
        fingerprint: KEY.toString('base64'),
        expires: Math.floor(Date.now() / 1000) + 60,
      }
      expectOk(await call('POST', '/admin/apps/test-app/certificates/fingerprint', pinned))
      const refused = (): Promise<never> => Promise.reject(new Error('connect ECONNREFUSED'))
      const later = await withEnv(
        { ...atPort(world.url), PAWL_ADMIN: credential },
        { open, connect: refused, now: () => Date.now() + DAY_MS },
      )
      expect(broken(later)).toEqual([
        expect.objectContaining({ check: 'certificates', says: expect.stringContaining('api.bank.example') as unknown }),
        expect.objectContaining({ check: 'webhooks', says: expect.stringContaining('takes no connection') as unknown }),
        expect.objectContaining({
          check: 'logins',
          says: expect.stringContaining('web of test-app: login.bank.example takes no connection') as unknown,
        }),
      ])
    } finally {
      await world.close()
    }
  })

  test('is left alone without a credential, or with a wrong one, and that is said', async () => {
    const world = await startWorld()
    try {
      const alone = await find(world, { XDG_CONFIG_HOME: directory })
      expect(namesOf(alone, 'skipped')).toEqual(['rights', 'applications', 'certificates', 'webhooks', 'logins'])
      expect(alone.find(({ check }) => check === 'webhooks')?.says).toContain('pawl login stores one')
      expect(broken(alone)).toEqual([])
      const wrong = await find(world, { PAWL_ADMIN: 'admin:a wrong one' })
      expect(wrong.find(({ check }) => check === 'applications')?.says).toContain('HTTP 401')
    } finally {
      await world.close()
    }
  })
})

test('the command says it in lines, and ends with 1', async () => {
  const { code, stdout } = await runCli(['doctor'], { PAWL_PROT: '1', PAWL_LOG_LEVEL: 'loud' })
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /^BROKEN {3}settings: PAWL_PROT.*\n {10}\S.*\nBROKEN {3}settings: PAWL_LOG_LEVEL.*\n {10}\S.*\n2 things are broken\n$/,
  )
})
