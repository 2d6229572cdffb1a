// Examines the configured database: whether it is reachable, migrated, under the right key and at the right time, and which of its contents
// will soon stop working.
import { sql } from 'kysely'
import { DirectoryInUse } from '../../src/storage/database/directory-lock.ts'
import { requireMigrated } from '../../src/storage/database/migrate.ts'
import { listApplications } from '../../src/storage/application/applications.ts'
import { listOidcProviders } from '../../src/storage/application/oidc-providers.ts'
import { readJson } from '../../src/storage/database/columns.ts'
import { type Database, readTime } from '../../src/storage/database/database.ts'
import type { OidcSettings } from '../../src/domain/oidc/provider.ts'
import { warnOfName } from '../../src/domain/pinning/certificate.ts'
import { listCredentials } from '../../src/storage/credential/credentials.ts'
import { listPinnedCertificates } from '../../src/storage/pinning/pinning.ts'
import { findKeyOrigin } from '../../src/domain/secrets/master-key.ts'
import { findUnmet, type Unmet } from '../../src/storage/database/requirements.ts'
import { listWebhooks } from '../../src/storage/webhook/webhooks.ts'
import { explainFault } from '../fault.ts'
import { explainDatabase, type Settings } from '../local/database.ts'
import { readKeyFit } from '../local/keys.ts'
import { readBinding } from '../local/record-binding.ts'
import { judgeApplications, judgeLogins, judgeRights, judgeWebhooks } from './content.ts'
import { type Finding, fault, type Instruments, ok, skipped, warning } from './finding.ts'
import { examineThroughServer } from './server.ts'

const WITHIN = [
  'server',
  'clock',
  'migrations',
  'role',
  'keys',
  'records',
  'rights',
  'applications',
  'certificates',
  'webhooks',
  'logins',
]

/** The checks from the one at `first` on, skipped. The embedded database is no server and has no roles. */
const skipWithin = (why: string, { secrets }: Settings, first = 0): readonly Finding[] =>
  WITHIN.slice(first)
    .filter((check) => secrets.databaseUrl !== undefined || !['server', 'role'].includes(check))
    .map((check) => skipped(check, why))

/** Runs all checks that need the database; they are skipped when it cannot be opened. */
export async function examineDatabase(settings: Settings, instruments: Instruments): Promise<readonly Finding[]> {
  let database: Database
  try {
    database = await instruments.open(settings)
  } catch (error) {
    if (error instanceof DirectoryInUse) return examineThroughServer(instruments)
    return [explainUnopened(explainFault(error), settings), ...skipWithin('the database was not opened', settings)]
  }
  try {
    return await examineOpened(database, settings, instruments)
  } finally {
    await database.close()
  }
}

function explainUnopened(said: string, { secrets }: Settings): Finding {
  if (said.startsWith('there is no database')) return warning('database', said, 'the first start (pawl serve) makes it')
  const setting = secrets.databaseUrl === undefined ? 'PAWL_DATA_DIR' : 'DATABASE_URL'
  return fault('database', said, `check ${setting}, and that the database serves`)
}

async function examineOpened(database: Database, settings: Settings, instruments: Instruments): Promise<readonly Finding[]> {
  let clock: Finding
  try {
    clock = await examineClock(database, instruments.now)
  } catch (error) {
    const said = explainFault(explainDatabase(error, database))
    return [explainUnopened(said, settings), ...skipWithin('the database does not answer', settings)]
  }
  /** Runs one check. Its failure, as with rows that somebody altered, becomes a finding, so that the other checks go on. */
  const look = async (
    check: string,
    work: () => Finding | Promise<Finding | readonly Finding[]>,
  ): Promise<readonly Finding[]> => {
    try {
      return [await work()].flat()
    } catch (error) {
      const said = explainFault(explainDatabase(error, database))
      return [
        fault(
          check,
          `this could not be looked at: ${said}`,
          'look at the rights of the role, and for rows that somebody altered',
        ),
      ]
    }
  }
  const server = await look('server', () => examineServer(database, settings))
  const findings = [ok('database', `${database.location} answers`), ...server, clock]
  const migrations = await examineMigrations(database)
  if (migrations.state !== 'ok')
    return [...findings, migrations, ...skipWithin('the schema is not that of this version', settings, WITHIN.indexOf('role'))]
  return [
    ...findings,
    migrations,
    ...(await look('role', () => examineRole(database))),
    await examineKeys(database, settings),
    ...(await look('records', () => examineRecords(database))),
    ...(await look('rights', async () => judgeRights(await listCredentials(database.db)))),
    ...(await look('applications', () => examineApplications(database, instruments.now()))),
    ...(await look('webhooks', () => examineWebhooks(database, instruments))),
    ...(await look('logins', () => examineLogins(database, instruments))),
  ]
}

/** Examines the server of the database. The embedded one has no settings to examine. */
async function examineServer({ db, kind }: Database, { config }: Settings): Promise<readonly Finding[]> {
  if (kind === 'embedded') return []
  const connections = config.databasePooler === 'transaction' ? undefined : config.databasePoolSize * config.processes
  const unmet = await findUnmet(db, connections)
  if (unmet.length === 0) return [ok('server', 'encoding, settings, commits and connections are as they must be')]
  return unmet.map(({ requirement, says, todo }) => WEIGHT[requirement](requirement, says, todo))
}

const WEIGHT: Readonly<Record<Unmet['requirement'], typeof fault>> = {
  encoding: fault,
  settings: fault,
  writes: fault,
  commits: warning,
  connections: warning,
}

const CLOCK_WARNING_MS = 2_000
const CLOCK_FAULT_MS = 30_000

async function examineClock({ db }: Database, now: () => number): Promise<Finding> {
  const before = now()
  const time = await readTime(db)
  const distance = Math.abs(time - (before + now()) / 2)
  const says = `the clock of this machine and that of the database are ${(distance / 1000).toFixed(1)} s apart`
  if (distance <= CLOCK_WARNING_MS) return ok('clock', says)
  const todo = 'let both machines follow a time server (NTP): a server that is over a minute off is not ready'
  return distance > CLOCK_FAULT_MS ? fault('clock', says, todo) : warning('clock', says, todo)
}

async function examineMigrations({ db }: Database): Promise<Finding> {
  try {
    await requireMigrated(db)
    return ok('migrations', 'the schema is that of this version')
  } catch (error) {
    return fault('migrations', explainFault(error), 'pawl migrate brings it up to date; a newer one needs a newer pawl')
  }
}

/** Examines whether the role may read and write the tables, and read the views. The embedded database has one role, which may do everything. */
async function examineRole({ db, kind }: Database): Promise<readonly Finding[]> {
  if (kind === 'embedded') return []
  const { rows } = await sql<{ role: string; tables: string | null; views: string | null }>`
    select quote_ident(current_user) as role,
      string_agg(quote_ident(t.relname), ', ' order by t.relname) filter (where t.relkind <> 'v' and not (
        has_table_privilege(t.oid, 'select') and has_table_privilege(t.oid, 'insert')
        and has_table_privilege(t.oid, 'update') and has_table_privilege(t.oid, 'delete'))) as tables,
      string_agg(quote_ident(t.relname), ', ' order by t.relname) filter (where t.relkind = 'v'
        and not has_table_privilege(t.oid, 'select')) as views
    from pg_class t join pg_class a on t.relnamespace = a.relnamespace and t.relowner = a.relowner
    where a.oid = 'activation'::regclass and t.relkind in ('r', 'p', 'v') and not t.relispartition
      and t.relname not like 'kysely%'`.execute(db)
  return rows.map(({ role, tables, views }) => {
    if (tables === null && views === null) return ok('role', `the role ${role} may read and write every table`)
    const says = [tables && `read and write ${tables}`, views && `read ${views}`]
    const todo = [
      tables && `grant select, insert, update, delete on ${tables} to ${role}`,
      views && `grant select on ${views} to ${role}`,
    ]
    return fault('role', `the role ${role} may not ${says.filter(Boolean).join(', nor ')}`, todo.filter(Boolean).join('; '))
  })
}

async function examineKeys(database: Database, settings: Settings): Promise<Finding> {
  const { setting, todo } = findKeyOrigin(settings, database.kind)
  try {
    const { doesFit, keyIds, isRotated } = await readKeyFit(database, settings)
    if (doesFit === undefined) return skipped('keys', 'no server has started on this database')
    if (doesFit && !isRotated)
      return warning('keys', `what was sealed before is not under the first master key, ${keyIds[0]}`, 'pawl key rotate')
    if (doesFit && keyIds.length > 1) {
      const says = `there are ${keyIds.length} master keys, and ${keyIds[0]} seals`
      return warning('keys', says, 'pawl key list says which of the others may leave the settings')
    }
    if (doesFit) return ok('keys', 'the master key opens the database')
    return fault('keys', 'the master key is not the one this database was written with', `${setting}: ${todo}`)
  } catch (error) {
    return fault('keys', explainFault(error), `${setting}: ${todo}`)
  }
}

async function examineRecords(database: Database): Promise<Finding> {
  const { stage, left } = await readBinding(database)
  if (stage === 'BOUND') return ok('records', 'all sealed records are bound to their users')
  const says = `${left} rows have sealed records that are bound to no user`
  return stage === 'OPEN'
    ? warning('records', says, 'pawl key bind, once no process of the version before runs (docs/UPGRADE.md)')
    : warning('records', `${says}; servers seal them anew`, 'look again later; the log of a server says what stays and why')
}

async function examineApplications({ db }: Database, now: number): Promise<readonly Finding[]> {
  const applications = (await listApplications(db)).map(({ applicationId }) => applicationId)
  const pins = await Promise.all(
    applications.map(async (app) =>
      (await listPinnedCertificates(db, app)).map((pin) => ({ ...pin, app, warning: warnOfName(pin) })),
    ),
  )
  return judgeApplications(applications, pins.flat(), now)
}

const examineWebhooks = async ({ db }: Database, instruments: Instruments): Promise<readonly Finding[]> =>
  judgeWebhooks(
    (await listWebhooks(db, null)).map(({ webhookId, disabledReason, ...webhook }) => ({
      ...webhook,
      id: webhookId,
      disabledReason: disabledReason ?? undefined,
    })),
    instruments,
  )

async function examineLogins({ db }: Database, instruments: Instruments): Promise<readonly Finding[]> {
  const applications = (await listApplications(db)).map(({ applicationId }) => applicationId)
  const providers = (await Promise.all(applications.map((app) => listOidcProviders(db, app)))).flat()
  const logins = providers.map(({ applicationId: app, providerId, settings }) => ({
    app,
    providerId,
    issuer: readIssuer(settings),
  }))
  return judgeLogins(logins, instruments)
}

/** The issuer in stored settings; empty when somebody altered them into something else. */
const readIssuer = (settings: string): string => (readJson(settings) as Partial<OidcSettings> | null | undefined)?.issuer ?? ''
