// The table token: static tokens for frequent low-risk calls (v3 §11).
import type { Db } from './database.ts'
import type { ActivationState } from './schema.ts'

export interface TokenRow {
  readonly tokenId: string
  readonly activationId: string
  readonly applicationId: string
  /** The factor combination that created the token. */
  readonly factors: string
  /** sealed */
  readonly tokenSecret: Buffer
  readonly state: ActivationState
}

/** A token together with the state of its activation. */
export async function findToken(db: Db, tokenId: string): Promise<TokenRow | undefined> {
  return db
    .selectFrom('token')
    .innerJoin('activation', 'activation.activation_id', 'token.activation_id')
    .select([
      'token.token_id as tokenId',
      'token.activation_id as activationId',
      'activation.application_id as applicationId',
      'token.factors',
      'token.token_secret as tokenSecret',
      'activation.state',
    ])
    .where('token.token_id', '=', tokenId)
    .executeTakeFirst()
}

/** Stores a token; `tokenSecret` is sealed. */
export async function insertToken(
  db: Db,
  token: { tokenId: string; activationId: string; factors: string; tokenSecret: Uint8Array; createdAt: Date },
): Promise<void> {
  await db
    .insertInto('token')
    .values({
      token_id: token.tokenId,
      activation_id: token.activationId,
      factors: token.factors,
      token_secret: token.tokenSecret,
      created_at: token.createdAt,
    })
    .execute()
}

/** Deletes a token of this activation; false when there was none. */
export async function deleteToken(db: Db, activationId: string, tokenId: string): Promise<boolean> {
  const deleted = await db
    .deleteFrom('token')
    .where('token_id', '=', tokenId)
    .where('activation_id', '=', activationId)
    .returning('token_id')
    .executeTakeFirst()
  return deleted !== undefined
}
