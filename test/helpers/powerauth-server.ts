// A database as PowerAuth server 1.9 leaves it: its tables, and rows with the encryption of its records, made here a second time from its
// documentation (Database Structure; Encrypting Records in Database).
import { createCipheriv, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { b64, bytesOf, deriveKeys, join, kdfInternal, newKeyPair, type PhoneVersion, random } from '../../phone/crypto.ts'
import { newState } from '../../phone/state.ts'
import { createPhone, type VirtualPhone } from '../../phone/virtual-phone.ts'
import type { Pool } from '../../src/storage/database.ts'

export interface ReferenceDatabase {
  /** The phone of a new user, bound as far as its row says; the row may be changed in any column. */
  readonly addPhone: (version: PhoneVersion, given?: PhoneGiven) => Promise<ReferencePhone>
  readonly insert: (table: string, row: Readonly<Record<string, unknown>>) => Promise<void>
  /** `IV ‖ AES-CBC`, under the key of these ids. */
  readonly encrypt: (plaintext: Uint8Array, ids: readonly string[]) => string
  readonly app: { readonly applicationKey: string; readonly applicationSecret: string; readonly masterPublicKey: Uint8Array }
}

export interface PhoneGiven {
  readonly userId?: string
  /** Columns that replace those of an active phone. */
  readonly row?: Readonly<Record<string, unknown>>
  readonly isPlain?: boolean
  readonly serverKey?: ReturnType<typeof newKeyPair>
}

export interface ReferencePhone {
  readonly userId: string
  readonly activationId: string
  /** Speaks to a server that has taken it over. */
  readonly at: (url: string) => VirtualPhone
}

/** 2026-01-02 03:04:05 of its clock; the reference stores no time zone. */
export const LOCAL_TIME = '2026-01-02 03:04:05.678'

/** Makes the tables, and one application `bank-app` with one version. */
export async function createReferenceDatabase(db: Pool, masterDbKey: Uint8Array): Promise<ReferenceDatabase> {
  for (const statement of TABLES) await sql.raw(statement).execute(db)
  const insert: ReferenceDatabase['insert'] = async (table, row) => {
    const columns = sql.join(Object.keys(row).map((name) => sql.ref(name)))
    await sql`insert into ${sql.table(table)} (${columns}) values (${sql.join(Object.values(row))})`.execute(db)
  }
  const encrypt: ReferenceDatabase['encrypt'] = (plaintext, ids) => {
    const iv = random(16)
    const cipher = createCipheriv('aes-128-cbc', kdfInternal(masterDbKey, bytesOf(ids.join('&'))), iv)
    return b64(join(iv, cipher.update(plaintext), cipher.final()))
  }
  const master = newKeyPair()
  const app = { applicationKey: b64(random(16)), applicationSecret: b64(random(16)), masterPublicKey: master.uncompressed }
  await insert('pa_application', { id: 7, name: 'bank-app', roles: '["ROLE_ONE","ROLE_TWO"]' })
  const pair = (id: number, { privateKey, uncompressed }: typeof master, timestamp: string) => ({
    id,
    application_id: 7,
    name: 'keys',
    master_key_private_base64: b64(toBigInteger(privateKey)),
    master_key_public_base64: b64(uncompressed),
    timestamp_created: timestamp,
  })
  await insert('pa_master_keypair', pair(2, newKeyPair(), '2020-01-01 00:00:00'))
  await insert('pa_master_keypair', pair(1, master, '2024-01-01 00:00:00'))
  await insert('pa_application_version', {
    id: 70,
    application_id: 7,
    name: 'default',
    application_key: app.applicationKey,
    application_secret: app.applicationSecret,
    supported: true,
  })
  let users = 0
  const addPhone: ReferenceDatabase['addPhone'] = async (version, given = {}) => {
    const { userId = `client-${++users}`, row = {}, isPlain = false, serverKey: server = newKeyPair() } = given
    const activationId = randomUUID()
    const state = newState()
    const { device } = state
    const ctrData = random(16)
    const number = toBigInteger(server.privateKey)
    await insert('pa_activation', {
      activation_id: activationId,
      application_id: 7,
      user_id: userId,
      activation_name: `phone of ${userId}`,
      activation_code: `CODE-${activationId}`,
      activation_status: 3,
      counter: 7,
      ctr_data: b64(ctrData),
      device_public_key_base64: b64(device.uncompressed),
      platform: 'IOS',
      device_info: 'iPhone18,1',
      flags: '["VIP","TEST"]',
      failed_attempts: 1,
      max_failed_attempts: 4,
      server_private_key_base64: isPlain ? b64(number) : encrypt(number, [userId, activationId]),
      server_private_key_encryption: isPlain ? 0 : 1,
      server_public_key_base64: b64(server.uncompressed),
      timestamp_activation_expire: LOCAL_TIME,
      timestamp_created: LOCAL_TIME,
      timestamp_last_used: LOCAL_TIME,
      master_keypair_id: 1,
      version: 3,
      commit_phase: 0,
      external_id: 'device-9',
      protocol: 'powerauth',
      ...row,
    })
    const keys = deriveKeys(device.privateKey, server.uncompressed)
    Object.assign(state, { activationId, serverPublicKey: server.uncompressed, ctrData, counter: 7, keys })
    return { userId, activationId, at: (url) => createPhone({ url, app, version }, state) }
  }
  return { addPhone, insert, encrypt, app }
}

/** What Java's BigInteger writes: no zeros in front, but one where the first bit is set. */
function toBigInteger(scalar: Uint8Array): Uint8Array {
  const digits = scalar.subarray(scalar.findIndex((byte) => byte !== 0))
  return (digits[0] ?? 0) > 127 ? join(new Uint8Array(1), digits) : digits
}

const TABLES = [
  'create table pa_application (id integer primary key, name varchar(255) not null, roles varchar(255))',
  `create table pa_application_version (id integer primary key, application_id integer not null references pa_application,
    application_key varchar(255), application_secret varchar(255), name varchar(255), supported boolean)`,
  `create table pa_master_keypair (id integer primary key, application_id integer not null references pa_application,
    master_key_private_base64 varchar(255) not null, master_key_public_base64 varchar(255) not null, name varchar(255),
    timestamp_created timestamp(6) not null)`,
  `create table pa_activation (activation_id varchar(37) primary key, application_id integer not null references pa_application,
    user_id varchar(255) not null, activation_name varchar(255), activation_code varchar(255), activation_status integer not null,
    activation_otp varchar(255), activation_otp_validation integer default 0 not null, blocked_reason varchar(255),
    counter integer not null, ctr_data varchar(255), device_public_key_base64 varchar(255), extras text, platform varchar(255),
    device_info varchar(255), flags varchar(255), failed_attempts integer not null, max_failed_attempts integer default 5 not null,
    server_private_key_base64 varchar(255) not null, server_private_key_encryption integer default 0 not null,
    server_public_key_base64 varchar(255) not null, timestamp_activation_expire timestamp(6) not null,
    timestamp_created timestamp(6) not null, timestamp_last_used timestamp(6) not null, timestamp_last_change timestamp(6),
    master_keypair_id integer references pa_master_keypair, version integer default 2, external_id varchar(255),
    protocol varchar(32) default 'powerauth' not null, commit_phase integer default 0)`,
  'create index pa_activation_user_id on pa_activation (user_id)',
  `create table pa_activation_history (id bigint primary key, activation_id varchar(37) not null references pa_activation,
    activation_status integer, event_reason varchar(255), external_user_id varchar(255), timestamp_created timestamp(6) not null,
    activation_version integer, activation_name varchar(255))`,
  `create table pa_token (token_id varchar(37) primary key, token_secret varchar(255) not null,
    activation_id varchar(37) not null references pa_activation, signature_type varchar(255) not null,
    timestamp_created timestamp(6) not null)`,
  `create table pa_application_callback (id varchar(37) primary key, application_id integer not null references pa_application,
    name varchar(255), callback_url varchar(1024), type varchar(64) default 'ACTIVATION_STATUS_CHANGE' not null,
    attributes varchar(1024), authentication text, encryption_mode varchar(255) default 'NO_ENCRYPTION' not null,
    max_attempts integer, initial_backoff varchar(64), retention_period varchar(64))`,
  `create table pa_operation (id varchar(37) primary key, user_id varchar(255), external_id varchar(255), activation_flag varchar(255),
    operation_type varchar(255) not null, template_name varchar(255), data text not null, parameters text, additional_data text,
    status integer not null, signature_type varchar(255) not null, failure_count bigint default 0 not null,
    max_failure_count bigint not null, timestamp_created timestamp not null, timestamp_expires timestamp not null,
    timestamp_finalized timestamp, risk_flags varchar(255), totp_seed varchar(24), activation_id varchar(37), status_reason varchar(32))`,
  `create table pa_operation_template (id bigint primary key, template_name varchar(255) not null unique,
    operation_type varchar(255) not null, data_template varchar(255) not null, signature_type varchar(255) not null,
    max_failure_count bigint not null, expiration bigint not null, risk_flags varchar(255),
    proximity_check_enabled boolean default false not null)`,
  `create table pa_recovery_code (id bigint primary key, recovery_code varchar(23) not null, application_id integer not null,
    user_id varchar(255) not null, activation_id varchar(37), status integer not null, failed_attempts integer default 0 not null,
    max_failed_attempts integer default 10 not null, timestamp_created timestamp(6) not null)`,
  `create table es_operation_template (id bigint primary key, placeholder varchar(255) not null, language varchar(8) not null,
    title varchar(255) not null, message text not null, attributes text, ui text)`,
]
