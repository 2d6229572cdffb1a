// The table token: static tokens for frequent low-risk calls (v3 §11).
import { sql } from 'kysely'
import { type AuditEvent, insertAuditEventFrom } from './audit.ts'
import type { Db } from './database.ts'
import type { ActivationState } from './schema.ts'

/** A token together with the state of its activation. */
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
