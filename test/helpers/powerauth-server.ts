// Makes a database like that of PowerAuth server 1.9: its tables, and rows with its record encryption, which is written here a second time from
// its documentation (Encrypting Records in Database).
import { createCipheriv, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { b64, bytesOf, deriveKeys, join, kdfInternal, newKeyPair, type PhoneVersion, random } from '../../phone/v3/crypto.ts'
import { newState } from '../../phone/v3/state.ts'
import { createPhone, type VirtualPhone } from '../../phone/v3/virtual-phone.ts'
import type { Pool } from '../../src/storage/database/database.ts'
import { REFERENCE_DDL } from './powerauth-schema.ts'

export interface ReferenceDatabase {
  /** Adds the phone of a new user, in the state that its row says. Any column of the row may be given. */
  readonly addPhone: (version: PhoneVersion, given?: PhoneGiven) => Promise<ReferencePhone>
  readonly insert: (table: string, row: Readonly<Record<string, unknown>>) => Promise<void>
  /** Encrypts under the key of these ids; Base64 of `IV ‖ AES-CBC`. */
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
  /** The same phone for a server that has imported it. */
  readonly at: (url: string) => VirtualPhone
}

/** A time of the reference's clock. The reference stores no time zone. */
export const LOCAL_TIME = '2026-01-02 03:04:05.678'

/** Makes the tables, and one application `bank-app` with one version. */
export async function createReferenceDatabase(db: Pool, masterDbKey: Uint8Array): Promise<ReferenceDatabase> {
  for (const statement of REFERENCE_DDL) await sql.raw(statement).execute(db)
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

/** The bytes of Java's BigInteger: without leading zeros, except one if the first bit is set. */
function toBigInteger(scalar: Uint8Array): Uint8Array {
  const digits = scalar.subarray(scalar.findIndex((byte) => byte !== 0))
  return (digits[0] ?? 0) > 127 ? join(new Uint8Array(1), digits) : digits
}
