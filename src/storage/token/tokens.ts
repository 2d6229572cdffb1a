// Stores static tokens for frequent low-risk calls in the table token (v3 §11).
import { type RawBuilder, sql } from 'kysely'
import { effectiveStateAt, stateAt } from '../activation/seen-state.ts'
import { type AuditEvent, insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { insertValuesFrom, type UniqueValue } from '../activation/unique-values.ts'
import type { ActivationState } from '../database/schema.ts'

/** A token together with the state of its activation. */
export interface TokenRow {
  readonly tokenId: string
  readonly activationId: string
  readonly applicationId: string
  readonly userId: string
  /** The factor combination that created the token. */
  readonly factors: string
  /** Sealed. */
  readonly tokenSecret: Buffer
  readonly state: ActivationState
}

/** The columns of joinToken in an outer join. */
export interface TokenColumns {
  readonly tokenId: string | null
  readonly tokenActivationId: string | null
  readonly tokenApplicationId: string | null
  readonly tokenUserId: string | null
  readonly tokenFactors: string | null
  readonly tokenSecret: Buffer | null
  readonly tokenState: ActivationState | null
}

/** Returns the token of a row; undefined without one. */
export function toToken(row: TokenColumns): TokenRow | undefined {
  const { tokenId, tokenActivationId, tokenApplicationId, tokenUserId, tokenFactors, tokenSecret, tokenState } = row
  if (tokenId === null || tokenActivationId === null || tokenApplicationId === null || tokenUserId === null) return undefined
  if (tokenFactors === null || tokenSecret === null || tokenState === null) return undefined
  return {
    tokenId,
    activationId: tokenActivationId,
    applicationId: tokenApplicationId,
    userId: tokenUserId,
    factors: tokenFactors,
    tokenSecret,
    state: tokenState,
  }
}

/** Joins the token with an id, and its activation as seen at a time, as the table `k` of TokenColumns; either may be missing. `id` is a column. */
export const joinToken = (id: RawBuilder<unknown>, at: RawBuilder<unknown>): RawBuilder<unknown> => sql`left join lateral (
    select token.token_id as "tokenId", token.activation_id as "tokenActivationId", bearer.application_id as "tokenApplicationId",
      bearer.user_id as "tokenUserId", token.factors as "tokenFactors", token.token_secret as "tokenSecret",
      ${stateAt(at)} as "tokenState"
    from token join activation bearer on bearer.activation_id = token.activation_id
    where token.token_id = ${id}
  ) as k on true`

interface NewToken {
  readonly tokenId: string
  readonly activationId: string
  readonly factors: string
  /** Sealed. */
  readonly tokenSecret: Uint8Array
}

/** Stores a token with its audit row, and uses up a value. Throws a unique violation when the value was used before. */
export async function insertToken(db: Db, token: NewToken, audit: AuditEvent, use: UniqueValue | undefined): Promise<void> {
  await sql`
    with created as (
      insert into token (token_id, activation_id, factors, token_secret, created_at)
      values (${token.tokenId}, ${token.activationId}, ${token.factors}, ${token.tokenSecret}, ${audit.occurredAt})
      returning activation_id, ${use?.valueHash ?? null}::bytea as value, ${use?.expiresAt ?? null}::timestamptz as "valueExpiresAt"
    ), used as (
      ${insertValuesFrom(sql`created`)}
    )
    ${insertAuditFrom(sql`created`, audit)}`.execute(db)
}

/** Deletes a token of this activation and writes an audit row; false when there was none. */
export async function deleteToken(db: Db, activationId: string, tokenId: string, audit: AuditEvent): Promise<boolean> {
  const { rows } = await sql`
    with deleted as (
      delete from token where token_id = ${tokenId} and activation_id = ${activationId} returning activation_id
    )
    ${insertAuditFrom(sql`deleted`, audit)} returning activation_id`.execute(db)
  return rows.length === 1
}

/** The tokens of a registration as the bank's API shows them, without their secrets. */
interface RegistrationTokens {
  readonly activationId: string
  readonly userId: string
  readonly state: ActivationState
  /** Oldest first, 1,000 at most. */
  readonly tokens: readonly { readonly tokenId: string; readonly factors: string; readonly createdAt: Date }[]
}

interface RegistrationName {
  readonly applicationId: string
  readonly activationId: string
}

/** Lists the tokens of an activation of this application, in any state; undefined when there is no such activation. */
export async function listTokens(
  db: Db,
  { applicationId, activationId }: RegistrationName,
  at: Date,
): Promise<RegistrationTokens | undefined> {
  const { rows } = await sql<{
    userId: string
    state: ActivationState
    tokenId: string | null
    factors: string | null
    createdAt: Date | null
  }>`
    select activation.user_id as "userId", ${effectiveStateAt(at)} as state, token.token_id as "tokenId", token.factors,
      token.created_at as "createdAt"
    from activation left join token on token.activation_id = activation.activation_id
    where activation.activation_id = ${activationId} and activation.application_id = ${applicationId}
    order by token.created_at, token.token_id limit ${LISTED_MAX}`.execute(db)
  const [row] = rows
  if (row === undefined) return undefined
  const tokens = rows.flatMap(({ tokenId, factors, createdAt }) =>
    tokenId === null || factors === null || createdAt === null ? [] : [{ tokenId, factors, createdAt }],
  )
  return { activationId, userId: row.userId, state: row.state, tokens }
}

// A phone may make any number of tokens, each with a code.
const LISTED_MAX = 1_000

/**
 * Deletes a token for the bank, and writes an audit row with the user of the activation. Returns whether this application has the activation, and
 * whether the activation had the token. The activation stays locked to the end of the statement, so that an erasure of its user sees the audit row
 * (docs/decisions/0019-erasure.md).
 */
export async function deleteTokenOfRegistration(
  db: Db,
  { applicationId, activationId }: RegistrationName,
  tokenId: string,
  audit: Pick<AuditEvent, 'eventType' | 'eventData' | 'verifiedBy' | 'occurredAt'>,
): Promise<{ readonly isRegistration: boolean; readonly isDeleted: boolean }> {
  const { rows } = await sql<{ isRegistration: boolean; isDeleted: boolean }>`
    with held as (
      select activation_id, application_id, user_id from activation
      where activation_id = ${activationId} and application_id = ${applicationId} for key share
    ), deleted as (
      delete from token using held where token.token_id = ${tokenId} and token.activation_id = held.activation_id
      returning held.activation_id, held.application_id, held.user_id
    ), audited as (
      ${insertAuditFrom(sql`deleted`, audit)}
      returning activation_id
    )
    select exists (select from held) as "isRegistration", exists (select from audited) as "isDeleted"`.execute(db)
  return rows[0] ?? { isRegistration: false, isDeleted: false }
}
