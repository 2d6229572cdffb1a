// The table token: static tokens for frequent low-risk calls (v3 §11).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from './audit.ts'
import type { Db } from './database.ts'
import type { ActivationState } from './schema.ts'
import { stateAt } from './activation/seen-state.ts'

export interface TokenRow {
  readonly tokenId: string
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  /** The factor combination that created the token. */
  readonly factors: string
  /** sealed */
  readonly tokenSecret: Buffer
  readonly state: ActivationState
}

/** A token together with the state of its activation. */
export async function findToken(db: Db, tokenId: string, at: Date): Promise<TokenRow | undefined> {
  return db
    .selectFrom('token')
    .innerJoin('activation', 'activation.activation_id', 'token.activation_id')
    .select([
      'token.token_id as tokenId',
      'token.activation_id as activationId',
      'activation.application_id as applicationId',
      'activation.user_id as userId',
      'token.factors',
      'token.token_secret as tokenSecret',
      stateAt(at).as('state'),
    ])
    .where('token.token_id', '=', tokenId)
    .executeTakeFirst()
}

export interface NewToken {
  readonly tokenId: string
  readonly activationId: string
  readonly factors: string
  /** sealed */
  readonly tokenSecret: Uint8Array
}

/** Stores a token together with its audit row. */
export async function insertToken(db: Db, token: NewToken, audit: AuditEvent): Promise<void> {
  await sql`
    with created as (
      insert into token (token_id, activation_id, factors, token_secret, created_at)
      values (${token.tokenId}, ${token.activationId}, ${token.factors}, ${token.tokenSecret}, ${audit.occurredAt})
      returning activation_id
    )
    ${insertAuditEventFrom('created', audit)}`.execute(db)
}

/** Deletes a token of this activation together with its audit row; false when there was none. */
export async function deleteToken(db: Db, activationId: string, tokenId: string, audit: AuditEvent): Promise<boolean> {
  const { rows } = await sql`
    with deleted as (
      delete from token where token_id = ${tokenId} and activation_id = ${activationId} returning activation_id
    )
    ${insertAuditEventFrom('deleted', audit)}`.execute(db)
  return rows.length === 1
}
