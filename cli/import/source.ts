// Reads the database of PowerAuth server 1.9, in one read-only transaction on one snapshot.
//
// Its times have no time zone: they are local times of the reference's process. Any column of a row may be null: a missing text is read as an
// empty one, a missing number as one out of range. A time outside of the years 1971 to 4999 is read as null.
import { type RawBuilder, sql } from 'kysely'
import { reasonOf } from '../../src/storage/database/failure.ts'
import { codeOf } from '../../src/storage/database/postgres-connection.ts'
import type { Db, Pool } from '../../src/storage/database/database.ts'
import { SESSION_SETTINGS } from '../../src/storage/database/session-settings.ts'
import { explainFault, Fault } from '../fault.ts'
import { checkTables } from './columns.ts'
import type { EncryptionMode } from './records.ts'

export interface SourceApplication {
  /** The primary key, to which other tables refer. */
  readonly number: number
  /** The id of the application in the API of the reference. */
  readonly applicationId: string
  /** JSON list, or null. */
  readonly roles: string | null
}

export interface SourceVersion {
  readonly number: number
  readonly applicationNumber: number
  readonly applicationKey: string | null
  readonly applicationSecret: string | null
  readonly name: string | null
  readonly isSupported: boolean
}

export interface SourceMasterKeyPair {
  readonly number: number
  readonly applicationNumber: number
  readonly privateKey: string
  readonly publicKey: string
}

export interface SourceActivation {
  readonly activationId: string
  /** Null when the application's row is missing. */
  readonly applicationId: string | null
  /** The primary key of the same row. */
  readonly applicationNumber: number | null
  readonly userId: string
  /** 1 CREATED to 5 REMOVED. */
  readonly status: number
  readonly activationCode: string | null
  readonly hasOtp: boolean
  readonly blockedReason: string | null
  readonly counter: number
  readonly ctrData: string | null
  readonly devicePublicKey: string | null
  readonly serverPublicKey: string
  readonly serverPrivateKey: string
  /** Null for an unknown mode. */
  readonly encryption: EncryptionMode | null
  readonly name: string | null
  readonly extras: string | null
  readonly platform: string | null
  readonly deviceInfo: string | null
  /** JSON list, or null. */
  readonly flags: string | null
  readonly failedAttempts: number
  readonly maxFailedAttempts: number
  readonly externalId: string | null
  /** `powerauth` or `fido2`. */
  readonly protocol: string
  readonly version: number | null
  readonly commitPhase: number
  readonly createdAt: Date | null
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
  /** Names and values of the columns whose times are read as null; null when there are none. */
  readonly badTimes: string | null
}

export interface SourceHistory {
  readonly activationId: string
  readonly status: number | null
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date | null
}

export interface SourceToken {
  readonly tokenId: string
  readonly activationId: string
  readonly secret: string
  readonly signatureType: string
  readonly createdAt: Date | null
}

export interface SourceCallback {
  readonly callbackId: string
  /** Null when the application's row is missing. */
  readonly applicationId: string | null
  /** The primary key of the same row. */
  readonly applicationNumber: number | null
  readonly name: string | null
  readonly url: string | null
  readonly type: string
  /** JSON list, or null. */
  readonly attributes: string | null
  /** JSON, encrypted or not. */
  readonly authentication: string | null
  /** Null for an unknown mode. */
  readonly encryption: EncryptionMode | null
}

export interface SourceTemplate {
  readonly templateName: string
  readonly operationType: string
  readonly dataTemplate: string
  readonly signatureType: string
  readonly maxFailureCount: number
  readonly expiration: number
  readonly riskFlags: string | null
  readonly isProximityCheckEnabled: boolean
}

/** The texts of the enrollment server for an operation. Its table may be in the same database. */
export interface SourceTexts {
  readonly operationType: string
  readonly language: string
  readonly title: string
  readonly message: string
  /** JSON. */
  readonly attributes: string | null
  /** JSON. */
  readonly ui: string | null
  /** JSON. */
  readonly resultTexts: string | null
}

export interface Source {
  readonly applications: () => Promise<readonly SourceApplication[]>
  readonly versions: () => Promise<readonly SourceVersion[]>
  /** Newest first. */
  readonly masterKeyPairs: () => Promise<readonly SourceMasterKeyPair[]>
  readonly countActivations: () => Promise<number>
  /**
   * Reads all activations in batches. Those of a user in an application follow each other: first ACTIVE ones, then BLOCKED, PENDING_COMMIT and
   * others. Of two in the same state, the one that was used last comes first.
   */
  readonly activations: (batchRows: number) => AsyncIterable<readonly SourceActivation[]>
  /** Some activations whose private key is encrypted. */
  readonly encryptedActivations: (limit: number) => Promise<readonly SourceActivation[]>
  /** Oldest first. */
  readonly history: (activationIds: readonly string[]) => Promise<readonly SourceHistory[]>
  readonly countTokens: () => Promise<number>
  readonly tokens: (activationIds: readonly string[]) => Promise<readonly SourceToken[]>
  /** Ids of tokens whose activation is missing, or has no id. */
  readonly lostTokens: () => Promise<readonly string[]>
  /** Ids that several rows have; none as long as the tables have their primary keys. */
  readonly repeated: (of: 'activations' | 'tokens') => Promise<readonly string[]>
  readonly callbacks: () => Promise<readonly SourceCallback[]>
  readonly templates: () => Promise<readonly SourceTemplate[]>
  readonly texts: () => Promise<readonly SourceTexts[]>
  /** Counts pending operations and valid recovery codes. */
  readonly countOthers: () => Promise<{ readonly operations: number; readonly recoveryCodes: number }>
}

/** A failure of the reference's database. */
export class SourceFailure extends Error {
  /** SQLSTATE, or Node's error code. */
  readonly code: string

  constructor(cause: unknown) {
    super(explainFault(cause), { cause })
    this.name = 'SourceFailure'
    this.code = String(codeOf(reasonOf(cause)) ?? '')
  }
}

/**
 * Runs `work` on the reference's database. Throws a Fault when the tables are not those of its version 1.9, and a SourceFailure when the
 * database fails.
 */
export async function readSource<T>(db: Pool, timeZone: string, work: (source: Source) => Promise<T>): Promise<T> {
  let outcome: PromiseSettledResult<T> | undefined
  try {
    await db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (tx) => {
        await prepare(tx)
        await checkTimeZone(tx, timeZone)
        await checkTables(tx)
        ;[outcome] = await Promise.allSettled([work(createSource(tx, timeZone))])
      })
  } catch (error) {
    // A failure at the end of the transaction does not matter when `work` has ended: the transaction wrote nothing.
    if (outcome === undefined) throw error instanceof Fault ? error : new SourceFailure(error)
  }
  if (outcome?.status === 'fulfilled') return outcome.value
  throw outcome?.reason
}

/** Sets the settings of the transaction, which override those of server, database, role and pooler. */
async function prepare(tx: Db): Promise<void> {
  const settings = {
    ...SESSION_SETTINGS,
    // The transaction is idle while a batch is written elsewhere.
    idle_in_transaction_session_timeout: '0',
    transaction_timeout: '0',
    statement_timeout: '0',
    lock_timeout: '0',
  }
  await sql`
    select set_config(name, value, true)
    from unnest(${Object.keys(settings)}::text[], ${Object.values(settings)}::text[]) as given (name, value)
    where current_setting(name, true) is not null`.execute(tx)
  // A SQL_ASCII database does not know the encoding of its texts. For a UTF-8 client, one row that is no UTF-8 would end the import.
  await sql`
    select set_config('client_encoding', 'SQL_ASCII', true) where current_setting('server_encoding') = 'SQL_ASCII'`.execute(tx)
}

function createSource(tx: Db, timeZone: string): Source {
  const read = async <T>(query: RawBuilder<T>): Promise<readonly T[]> => {
    try {
      return (await query.execute(tx)).rows
    } catch (error) {
      throw new SourceFailure(error)
    }
  }
  const count = async (query: RawBuilder<{ count: number }>): Promise<number> => (await read(query))[0]?.count ?? 0
  const text = (column: string) => sql`coalesce(${sql.ref(column)}, '')`
  // No reader has a form for infinity or for times BC, pawl's lists are searched from 1970 on, and near the limits of the column type the
  // conversion of the time zone fails.
  const hasTime = (column: string) =>
    sql`coalesce(${sql.ref(column)} >= timestamp '1971-01-01' and ${sql.ref(column)} < timestamp '5000-01-01', false)`
  const time = (column: string) => sql`case when ${hasTime(column)} then ${sql.ref(column)} at time zone ${timeZone}::text end`
  const badTime = (column: string, name: string) =>
    sql`case when not ${hasTime(column)} then ${`${name} `}::text || coalesce(${sql.ref(column)}::text, 'null') end`
  const mode = (column: string) => sql`case ${sql.ref(column)} when 0 then 'NO_ENCRYPTION' when 1 then 'AES_HMAC' end`
  const activations = (rest: RawBuilder<unknown>) => sql<SourceActivation>`
    select ${text('a.activation_id')} as "activationId", ${APPLICATION}, ${text('a.user_id')} as "userId",
      coalesce(a.activation_status, 0) as status, a.activation_code as "activationCode", a.activation_otp is not null as "hasOtp",
      a.blocked_reason as "blockedReason", coalesce(a.counter, -1) as counter, a.ctr_data as "ctrData",
      a.device_public_key_base64 as "devicePublicKey", ${text('a.server_public_key_base64')} as "serverPublicKey",
      ${text('a.server_private_key_base64')} as "serverPrivateKey", ${mode('a.server_private_key_encryption')} as encryption,
      a.activation_name as name, a.extras, a.platform, a.device_info as "deviceInfo", a.flags,
      coalesce(a.failed_attempts, -1) as "failedAttempts", coalesce(a.max_failed_attempts, -1) as "maxFailedAttempts",
      a.external_id as "externalId", coalesce(a.protocol, 'powerauth') as protocol, a.version,
      coalesce(a.commit_phase, 0) as "commitPhase", ${time('a.timestamp_created')} as "createdAt",
      ${time('a.timestamp_activation_expire')} as "expiresAt", ${time('a.timestamp_last_used')} as "lastUsedAt",
      nullif(concat_ws(', ', ${badTime('a.timestamp_created', 'timestamp_created')},
        ${badTime('a.timestamp_activation_expire', 'timestamp_activation_expire')},
        ${badTime('a.timestamp_last_used', 'timestamp_last_used')}), '') as "badTimes"
    from pa_activation a ${rest}`
  return {
    applications: () =>
      read(
        sql<SourceApplication>`select id as number, ${text('name')} as "applicationId", roles from pa_application order by id`,
      ),
    versions: () =>
      read(sql<SourceVersion>`
      select id as number, application_id as "applicationNumber", application_key as "applicationKey",
        application_secret as "applicationSecret", name, coalesce(supported, false) as "isSupported"
      from pa_application_version order by id`),
    masterKeyPairs: () =>
      read(sql<SourceMasterKeyPair>`
      select id as number, application_id as "applicationNumber", ${text('master_key_private_base64')} as "privateKey",
        ${text('master_key_public_base64')} as "publicKey"
      from pa_master_keypair order by timestamp_created desc, id desc`),
    countActivations: () => count(sql`select count(*)::int as count from pa_activation`),
    async *activations(batchRows) {
      const order = sql`order by a.user_id, a.application_id, ${RANK} desc, a.timestamp_last_used desc, a.activation_id desc`
      await read(sql`declare imported no scroll cursor for ${activations(order)}`)
      for (;;) {
        const batch = await read(sql<SourceActivation>`fetch forward ${sql.lit(batchRows)} from imported`)
        if (batch.length > 0) yield batch
        if (batch.length < batchRows) break
      }
      await read(sql`close imported`)
    },
    encryptedActivations: (limit) =>
      read(activations(sql`where a.server_private_key_encryption = 1 order by a.activation_id limit ${limit}`)),
    history: (activationIds) =>
      read(sql<SourceHistory>`
      select activation_id as "activationId", activation_status as status, event_reason as reason,
        external_user_id as "externalUserId", ${time('timestamp_created')} as "occurredAt"
      from pa_activation_history where activation_id = any(${[...activationIds]}::text[]) order by timestamp_created, id`),
    countTokens: () => count(sql`select count(*)::int as count from pa_token`),
    tokens: (activationIds) =>
      read(sql<SourceToken>`
      select ${text('token_id')} as "tokenId", activation_id as "activationId", ${text('token_secret')} as secret,
        ${text('signature_type')} as "signatureType", ${time('timestamp_created')} as "createdAt"
      from pa_token where activation_id = any(${[...activationIds]}::text[]) and activation_id <> '' order by token_id`),
    lostTokens: async () =>
      (
        await read(sql<{ tokenId: string }>`
        select ${text('t.token_id')} as "tokenId" from pa_token t
        where coalesce(t.activation_id, '') = '' or not exists (select from pa_activation a where a.activation_id = t.activation_id) order by t.token_id`)
      ).map(({ tokenId }) => tokenId),
    repeated: async (of) => {
      const [table, column] =
        of === 'activations' ? (['pa_activation', 'activation_id'] as const) : (['pa_token', 'token_id'] as const)
      const ids = sql<{ id: string }>`
        select ${text(column)} as id from ${sql.table(table)} group by 1 having count(*) > 1`
      return (await read(ids)).map(({ id }) => id)
    },
    callbacks: () =>
      read(sql<SourceCallback>`
      select ${text('a.id')} as "callbackId", ${APPLICATION}, a.name, a.callback_url as url, ${text('a.type')} as type, a.attributes,
        a.authentication,
        case when a.encryption_mode in ('NO_ENCRYPTION', 'AES_HMAC') then a.encryption_mode end as encryption
      from pa_application_callback a order by a.id`),
    templates: () =>
      read(sql<SourceTemplate>`
      select ${text('template_name')} as "templateName", ${text('operation_type')} as "operationType",
        ${text('data_template')} as "dataTemplate", ${text('signature_type')} as "signatureType",
        coalesce(max_failure_count, 0)::float8 as "maxFailureCount", coalesce(expiration, 0)::float8 as expiration,
        risk_flags as "riskFlags", coalesce(proximity_check_enabled, false) as "isProximityCheckEnabled"
      from pa_operation_template order by template_name`),
    texts: async () =>
      (await isThere(read, 'es_operation_template'))
        ? read(sql<SourceTexts>`
          select ${text('placeholder')} as "operationType", ${text('language')} as language, ${text('title')} as title,
            ${text('message')} as message, attributes, to_jsonb(t) ->> 'ui' as ui, to_jsonb(t) ->> 'result_texts' as "resultTexts"
          from es_operation_template t order by placeholder, language`)
        : [],
    countOthers: async () => ({
      operations: await count(sql`select count(*)::int as count from pa_operation where status = 0`),
      recoveryCodes: (await isThere(read, 'pa_recovery_code'))
        ? await count(sql`select count(*)::int as count from pa_recovery_code where status in (1, 2)`)
        : 0,
    }),
  }
}

/** Id and primary key of the application; null when it is missing. A join would return an activation twice when the id is there twice. */
const APPLICATION = sql`(select p.name from pa_application p where p.id = a.application_id limit 1) as "applicationId",
  (select p.id from pa_application p where p.id = a.application_id limit 1) as "applicationNumber"`

/** Ranks a user's live activations, of which pawl takes one: ACTIVE before BLOCKED, and BLOCKED before PENDING_COMMIT. */
const RANK = sql`case a.activation_status when 3 then 3 when 4 then 2 when 2 then 1 else 0 end`

async function isThere(
  read: (query: RawBuilder<{ isThere: boolean }>) => Promise<readonly { isThere: boolean }[]>,
  table: string,
): Promise<boolean> {
  return (await read(sql`select to_regclass(${table}) is not null as "isThere"`))[0]?.isThere === true
}

async function checkTimeZone(tx: Db, timeZone: string): Promise<void> {
  const { rows } = await sql`
    select from pg_timezone_names where name = ${timeZone}`.execute(tx)
  if (rows.length === 0) throw new Fault('usage', `--time-zone ${timeZone}: not a name that PostgreSQL knows, like Europe/Prague`)
}
