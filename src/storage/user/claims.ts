// Stores the bank's claims about its users, for their phones, in the table user_claims (v3 §13, cloud §10).
import { sql } from 'kysely'
import { type Db, writesRow } from '../database/database.ts'

/** Finds the sealed claims of a user. */
export async function findUserClaims(db: Db, applicationId: string, userId: string): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('user_claims')
    .select('claims')
    .where('application_id', '=', applicationId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return row?.claims
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
  await db
    .insertInto('user_claims')
    .values({ application_id: applicationId, user_id: userId, claims, updated_at: at })
    .onConflict((conflict) => conflict.columns(['application_id', 'user_id']).doUpdateSet({ claims, updated_at: at }))
    .execute()
}

/** Deletes the claims of a user; false when there were none. */
export const deleteUserClaims = (db: Db, applicationId: string, userId: string): Promise<boolean> =>
  writesRow(db, sql`delete from user_claims where application_id = ${applicationId} and user_id = ${userId}`)
