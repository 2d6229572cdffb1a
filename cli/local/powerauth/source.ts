// Reads the database of PowerAuth server 1.9, in one transaction that sees one moment and writes nothing.
//
// Its times have no time zone: they are what the clock of its process showed.
import { type RawBuilder, sql } from 'kysely'
import type { Db, Pool } from '../../../src/storage/database.ts'
import { Fault } from '../../fault.ts'
import type { EncryptionMode } from './records.ts'

export interface SourceApplication {
  /** Its own number, which the other tables name. */
  readonly number: number
  /** What its API calls the id. */
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
  readonly createdAt: Date
}

export interface SourceActivation {
  readonly activationId: string
  readonly applicationId: string
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
  readonly encryption: EncryptionMode | undefined
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
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly lastUsedAt: Date
  /** The phone of the same user and application that goes before this one. */
  readonly preferred: string | null
}

export interface SourceHistory {
  readonly activationId: string
  readonly status: number | null
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date
}

export interface SourceToken {
  readonly tokenId: string
  readonly activationId: string
  readonly secret: string
  readonly signatureType: string
  readonly createdAt: Date
}

export interface SourceCallback {
  readonly callbackId: string
  readonly applicationId: string
  readonly name: string | null
  readonly url: string | null
  readonly type: string
  /** JSON list, or null. */
  readonly attributes: string | null
  /** JSON, encrypted or not. */
  readonly authentication: string | null
  readonly encryption: EncryptionMode | undefined
  readonly isEnabled: boolean
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

/** What the enrollment server shows of an operation; its table may stand in the same database. */
export interface SourceTexts {
  readonly operationType: string
  readonly language: string
  readonly title: string
  readonly message: string
  /** JSON. */
  readonly attributes: string | null
  /** JSON. */
  readonly ui: string | null
}

export interface Source {
  readonly applications: () => Promise<readonly SourceApplication[]>
  readonly versions: () => Promise<readonly SourceVersion[]>
  /** Newest first. */
  readonly masterKeyPairs: () => Promise<readonly SourceMasterKeyPair[]>
  readonly countActivations: () => Promise<number>
  /** The next ones after this id, in the order of their ids. */
  readonly activations: (after: string, limit: number) => Promise<readonly SourceActivation[]>
  /** Some that are encrypted. */
  readonly encryptedActivations: (limit: number) => Promise<readonly SourceActivation[]>
  /** Oldest first. */
  readonly history: (activationIds: readonly string[]) => Promise<readonly SourceHistory[]>
  readonly tokens: (activationIds: readonly string[]) => Promise<readonly SourceToken[]>
  readonly callbacks: () => Promise<readonly SourceCallback[]>
  readonly templates: () => Promise<readonly SourceTemplate[]>
  readonly texts: () => Promise<readonly SourceTexts[]>
  /** Operations that wait, and recovery codes that are good. */
  readonly countOthers: () => Promise<{ readonly operations: number; readonly recoveryCodes: number }>
}

/** Runs `work` on the reference's database. Throws a Fault where the tables are not those of its version 1.9. */
export const readSource = <T>(db: Pool, timeZone: string, work: (source: Source) => Promise<T>): Promise<T> =>
  db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (tx) => {
      // It is idle while a batch is written elsewhere; a connection of pawl is ended after some seconds of that.
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      await checkTimeZone(tx, timeZone)
      await checkTables(tx)
      return work(createSource(tx, timeZone))
    })

function createSource(tx: Db, timeZone: string): Source {
  const read = async <T>(query: RawBuilder<T>): Promise<readonly T[]> => (await query.execute(tx)).rows
  const count = async (query: RawBuilder<{ count: number }>): Promise<number> => (await read(query))[0]?.count ?? 0
  const time = (column: string) => sql`${sql.ref(column)} at time zone ${timeZone}::text`
  const mode = (column: string) => sql`case ${sql.ref(column)} when 0 then 'NO_ENCRYPTION' when 1 then 'AES_HMAC' end`
  const activations = (where: RawBuilder<unknown>, limit: number) =>
    read(sql<SourceActivation>`
    select a.activation_id as "activationId", p.name as "applicationId", a.user_id as "userId", a.activation_status as status,
      a.activation_code as "activationCode", a.activation_otp is not null as "hasOtp", a.blocked_reason as "blockedReason", a.counter,
      a.ctr_data as "ctrData", a.device_public_key_base64 as "devicePublicKey", a.server_public_key_base64 as "serverPublicKey",
      a.server_private_key_base64 as "serverPrivateKey", ${mode('a.server_private_key_encryption')} as encryption,
      a.activation_name as name, a.extras, a.platform, a.device_info as "deviceInfo", a.flags, a.failed_attempts as "failedAttempts",
      a.max_failed_attempts as "maxFailedAttempts", a.external_id as "externalId", coalesce(a.protocol, 'powerauth') as protocol,
      a.version, coalesce(a.commit_phase, 0) as "commitPhase", ${time('a.timestamp_created')} as "createdAt",
      ${time('a.timestamp_activation_expire')} as "expiresAt", ${time('a.timestamp_last_used')} as "lastUsedAt",
      case when a.activation_status in (2, 3, 4) then (
        select o.activation_id from pa_activation o
        where o.user_id = a.user_id and o.application_id = a.application_id and o.activation_status in (2, 3, 4) and o.version = 3
          and coalesce(o.protocol, 'powerauth') = 'powerauth'
          and (${rank('o')}, o.timestamp_last_used, o.activation_id) > (${rank('a')}, a.timestamp_last_used, a.activation_id)
        order by ${rank('o')} desc, o.timestamp_last_used desc, o.activation_id desc limit 1
      ) end as preferred
    from pa_activation a join pa_application p on p.id = a.application_id
    where ${where} order by a.activation_id limit ${limit}`)
  return {
    applications: () =>
      read(sql<SourceApplication>`select id as number, name as "applicationId", roles from pa_application order by id`),
    versions: () =>
      read(sql<SourceVersion>`
      select id as number, application_id as "applicationNumber", application_key as "applicationKey",
        application_secret as "applicationSecret", name, coalesce(supported, false) as "isSupported"
      from pa_application_version order by id`),
    masterKeyPairs: () =>
      read(sql<SourceMasterKeyPair>`
      select id as number, application_id as "applicationNumber", master_key_private_base64 as "privateKey",
        master_key_public_base64 as "publicKey", ${time('timestamp_created')} as "createdAt"
      from pa_master_keypair order by timestamp_created desc, id desc`),
    countActivations: () => count(sql`select count(*)::int as count from pa_activation`),
    activations: (after, limit) => activations(sql`a.activation_id > ${after}`, limit),
    encryptedActivations: (limit) => activations(sql`a.server_private_key_encryption = 1`, limit),
    history: (activationIds) =>
      read(sql<SourceHistory>`
      select activation_id as "activationId", activation_status as status, event_reason as reason,
        external_user_id as "externalUserId", ${time('timestamp_created')} as "occurredAt"
      from pa_activation_history where activation_id = any(${[...activationIds]}::text[]) order by timestamp_created, id`),
    tokens: (activationIds) =>
      read(sql<SourceToken>`
      select token_id as "tokenId", activation_id as "activationId", token_secret as secret, signature_type as "signatureType",
        ${time('timestamp_created')} as "createdAt"
      from pa_token where activation_id = any(${[...activationIds]}::text[]) order by token_id`),
    callbacks: () =>
      read(sql<SourceCallback>`
      select c.id as "callbackId", p.name as "applicationId", c.name, c.callback_url as url, c.type, c.attributes, c.authentication,
        case when c.encryption_mode in ('NO_ENCRYPTION', 'AES_HMAC') then c.encryption_mode end as encryption,
        coalesce((to_jsonb(c) ->> 'enabled')::boolean, true) as "isEnabled"
      from pa_application_callback c join pa_application p on p.id = c.application_id order by c.id`),
    templates: () =>
      read(sql<SourceTemplate>`
      select template_name as "templateName", operation_type as "operationType", data_template as "dataTemplate",
        signature_type as "signatureType", max_failure_count::float8 as "maxFailureCount", expiration::float8 as expiration,
        risk_flags as "riskFlags", proximity_check_enabled as "isProximityCheckEnabled"
      from pa_operation_template order by template_name`),
    texts: async () =>
      (await hasTable(tx, 'es_operation_template'))
        ? read(sql<SourceTexts>`
          select placeholder as "operationType", language, title, message, attributes, to_jsonb(t) ->> 'ui' as ui
          from es_operation_template t order by placeholder, language`)
        : [],
    countOthers: async () => ({
      operations: await count(sql`select count(*)::int as count from pa_operation where status = 0`),
      recoveryCodes: (await hasTable(tx, 'pa_recovery_code'))
        ? await count(sql`select count(*)::int as count from pa_recovery_code where status in (1, 2)`)
        : 0,
    }),
  }
}

/** A user has one live phone here: an active one goes before a blocked one, and that before one that waits for its commit. */
const rank = (table: string): RawBuilder<unknown> =>
  sql`case ${sql.ref(`${table}.activation_status`)} when 3 then 3 when 4 then 2 else 1 end`

async function hasTable(tx: Db, table: string): Promise<boolean> {
  const { rows } = await sql<{ isThere: boolean }>`select to_regclass(${table}) is not null as "isThere"`.execute(tx)
  return rows[0]?.isThere === true
}

async function checkTimeZone(tx: Db, timeZone: string): Promise<void> {
  const { rows } = await sql`
    select from pg_timezone_names where name = ${timeZone}`.execute(tx)
  if (rows.length === 0) throw new Fault('usage', `--time-zone ${timeZone}: not a name that PostgreSQL knows, like Europe/Prague`)
}

async function checkTables(tx: Db): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select attrelid::regclass::text || '.' || attname as name from pg_attribute
    where attnum > 0 and not attisdropped and attrelid = any(
      select to_regclass(t) from unnest(${[...new Set(COLUMNS.map((name) => name.split('.')[0]))]}::text[]) as t)`.execute(tx)
  const there = new Set(rows.map(({ name }) => name.split('.').slice(-2).join('.')))
  const missing = COLUMNS.filter((name) => !there.has(name))
  if (missing.length > 0)
    throw new Fault('refused', `this is not the database of a PowerAuth server 1.9: it has no ${missing.join(', ')}`)
}

/** What tells the schema of 1.9 from older ones, and from any other database. */
const COLUMNS = [
  'pa_application.roles',
  'pa_application_version.application_secret',
  'pa_master_keypair.master_key_private_base64',
  'pa_activation.server_private_key_base64',
  'pa_activation.external_id',
  'pa_activation.protocol',
  'pa_activation.commit_phase',
  'pa_activation_history.event_reason',
  'pa_token.token_secret',
  'pa_application_callback.encryption_mode',
  'pa_operation.status',
  'pa_operation_template.proximity_check_enabled',
] as const
