// Stores the bank's claims about its users, for their phones, in the table user_claims (v3 §13, cloud §10).
import { sql } from 'kysely'
import { type Db, writesRow } from '../database/database.ts'

/** Finds the sealed claims of a user. */
export async function findUserClaims(db: Db, applicationId: string, userId: string): Promise<Buffer | undefined> {
  const { rows } = await sql<{ claims: Buffer }>`
    select claims from user_claims where application_id = ${applicationId} and user_id = ${userId}`.execute(db)
  return rows[0]?.claims
}

interface NewUserClaims {
  readonly applicationId: string
  readonly userId: string
  /** Sealed. */
  readonly claims: Uint8Array
  readonly at: Date
}

/** Stores the claims of a user, replacing earlier ones. */
export async function storeUserClaims(db: Db, { applicationId, userId, claims, at }: NewUserClaims): Promise<void> {
  await sql`
    insert into user_claims (application_id, user_id, claims, updated_at) values (${applicationId}, ${userId}, ${claims}, ${at})
    on conflict (application_id, user_id) do update set claims = excluded.claims, updated_at = excluded.updated_at`.execute(db)
}

/** Deletes the claims of a user; false when there were none. */
export const deleteUserClaims = (db: Db, applicationId: string, userId: string): Promise<boolean> =>
  writesRow(db, sql`delete from user_claims where application_id = ${applicationId} and user_id = ${userId}`)
