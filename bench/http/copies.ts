// Makes many phones of protocol 3 from one that was bound: the others are copies of its rows. A hundred thousand copies take a minute; to bind
// as many phones takes up to half an hour.
import { randomUUID } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { PhoneState, PhoneToken } from '../../phone/v3/state.ts'
import { createRecordKeys, type Place, type RecordKeys } from '../../src/domain/secrets/record-keys.ts'
import { type OwnedToken, places } from '../../src/domain/secrets/secrets.ts'
import { systemPlatform } from '../../src/lib/platform.ts'
import { type Db, openDatabase } from '../../src/storage/database/database.ts'

/** A copy of a phone: with a user and a token of its own, and with the keys of the original. */
export interface PhoneCopy {
  readonly userId: string
  readonly state: PhoneState
  readonly token: PhoneToken
}

export type CopyPhone = (phone: PhoneState, token: PhoneToken, count: number) => Promise<readonly PhoneCopy[]>

/** Returns a function that makes copies in the database of a server. `masterKey`: the server's, 32 bytes. */
export const createPhoneCopier =
  (databaseUrl: string, masterKey: Uint8Array): CopyPhone =>
  async (phone, token, count) => {
    const { db, close } = await openDatabase({ databaseUrl, dataDir: '', poolSize: 1 })
    try {
      const keys = createRecordKeys([masterKey], systemPlatform)
      const model = { phone, token, ...(await openSecrets(db, keys, phone)) }
      const copies = Array.from({ length: count }, () => copyOf(phone, token))
      for (let i = 0; i < count; i += AT_ONCE) await storeCopies(db, keys, model, copies.slice(i, i + AT_ONCE))
      // Sorted by random ids, because neighbours in a page of the table would not send requests one after the other.
      return copies.toSorted((one, other) => (one.state.activationId < other.state.activationId ? -1 : 1))
    } finally {
      await close()
    }
  }

function copyOf(phone: PhoneState, token: PhoneToken): PhoneCopy {
  const copied = { ...token, id: randomUUID() }
  return {
    userId: `bench-${randomUUID()}`,
    state: { ...phone, activationId: randomUUID(), tokens: [copied] },
    token: copied,
  }
}

/** The secrets of a phone's rows, unsealed. */
interface OpenSecrets {
  readonly applicationId: string
  readonly serverPrivateKey: Uint8Array
  readonly masterSecret: Uint8Array
}

interface Model extends OpenSecrets {
  readonly phone: PhoneState
  readonly token: PhoneToken
}

async function openSecrets(db: Db, keys: RecordKeys, { activationId }: PhoneState): Promise<OpenSecrets> {
  const found = await db
    .selectFrom('activation')
    .select(['application_id', 'user_id', 'server_private_key', 'master_secret'])
    .where('activation_id', '=', activationId)
    .executeTakeFirstOrThrow()
  const applicationId = found.application_id
  const owner = { activationId, applicationId, userId: found.user_id }
  return {
    applicationId,
    serverPrivateKey: keys.open(places.serverPrivateKey(owner), found.server_private_key),
    masterSecret: keys.open(places.masterSecret(owner), found.master_secret ?? new Uint8Array(0)),
  }
}

async function storeCopies(
  db: Db,
  keys: RecordKeys,
  {
    applicationId,
    phone: { activationId, ctrData },
    token: { id: tokenId, secret, factors },
    serverPrivateKey,
    masterSecret,
  }: Model,
  copies: readonly PhoneCopy[],
): Promise<void> {
  const owners = copies.map(({ userId, state, token }) => ({
    activationId: state.activationId,
    applicationId,
    userId,
    tokenId: token.id,
    factors: factors.toUpperCase(),
  }))
  const ids = owners.map((owner) => owner.activationId)
  const sealFor = (placeOf: (owner: OwnedToken) => Place, plaintext: Uint8Array) =>
    owners.map((owner) => keys.seal(placeOf(owner), plaintext))
  await insertLike(db, 'activation', {
    model: sql`select * from activation where activation_id = ${activationId}`,
    each: sql`unnest(${ids}::text[], ${copies.map(({ userId }) => userId)}::text[], ${sealFor(places.serverPrivateKey, serverPrivateKey)}::bytea[],
      ${sealFor(places.masterSecret, masterSecret)}::bytea[], ${sealFor((owner) => places.ctrData(owner.activationId), ctrData)}::bytea[])
      as s (id, user_id, server_private_key, master_secret, ctr_data)`,
    columns: {
      activation_id: 's.id',
      user_id: 's.user_id',
      activation_code_hash: `decode(md5(s.id), 'hex')`,
      server_private_key: 's.server_private_key',
      master_secret: 's.master_secret',
      ctr_data: 's.ctr_data',
    },
  })
  const tokenIds = copies.map(({ token }) => token.id)
  await insertLike(db, 'token', {
    model: sql`select * from token where token_id = ${tokenId}`,
    each: sql`unnest(${tokenIds}::text[], ${ids}::text[], ${sealFor(places.tokenSecret, secret)}::bytea[])
      as s (id, activation_id, token_secret)`,
    columns: { token_id: 's.id', activation_id: 's.activation_id', token_secret: 's.token_secret' },
  })
}

/**
 * Inserts a copy of the one row that the query `model` returns, for each row of the table expression `each`. `columns`: those that differ from
 * the model, as SQL over the alias of `each`.
 */
export async function insertLike(
  db: Db,
  table: string,
  {
    model,
    each,
    columns,
  }: Readonly<Record<'model' | 'each', RawBuilder<unknown>>> & { readonly columns: Readonly<Record<string, string>> },
): Promise<void> {
  const found = await sql<{ name: string }>`
    select column_name as name from information_schema.columns
    where table_schema = 'public' and table_name = ${table} and is_generated = 'NEVER' and is_identity = 'NO'
    order by ordinal_position`.execute(db)
  const names = found.rows.map(({ name }) => name)
  const values = names.map((name) => columns[name] ?? `t.${name}`)
  await sql`insert into ${sql.table(table)} (${sql.raw(names.join(', '))})
    select ${sql.raw(values.join(', '))} from ${each} cross join (${model}) as t`.execute(db)
}

const AT_ONCE = 1_000
