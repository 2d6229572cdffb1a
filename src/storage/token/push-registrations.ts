// The table push_registration: where a bank's push sender reaches the phone of an activation, at most one place each (mobile-token §7).
import { sql } from 'kysely'
import { isActiveAt } from '../activation/seen-state.ts'
import { type Db, inTransaction, type Pool } from '../database/database.ts'
import type { OperationStatus } from '../database/schema.ts'

export type PushPlatform = 'apns' | 'fcm' | 'hms'
export type PushEnvironment = 'development' | 'production'

interface PushRegistration {
  readonly activationId: string
  readonly platform: PushPlatform
  readonly environment: PushEnvironment | null
  /** sealed */
  readonly pushToken: Uint8Array
}

interface NewPushRegistration extends PushRegistration {
  /** Keyed, 32 bytes: finds the activation that had the token before. */
  readonly pushTokenHash: Uint8Array
}

/**
 * Stores where pushes go, in place of what was there, and takes the token from any other activation; false, and nothing is changed, when
 * the activation is not ACTIVE any more. The row version moves on: who removes the activation at the same time looks again, and finds what to forget.
 */
export async function putPushRegistration(db: Pool, registration: NewPushRegistration, at: Date): Promise<boolean> {
  const { activationId, platform, environment, pushToken, pushTokenHash } = registration
  return inTransaction(db, async (tx) => {
    // One after the other: two that exchange their tokens would wait for each other. Phones register rarely.
    await sql`select pg_advisory_xact_lock(hashtextextended('pawl.push_registration', 0))`.execute(tx)
    // The activation is locked before what belongs to it, as where it is removed.
    const { rows } = await sql`
      update activation set row_version = row_version + 1 where activation_id = ${activationId} and ${isActiveAt(at)}
      returning activation_id`.execute(tx)
    if (rows.length === 0) return false
    await sql`
      delete from push_registration where push_token_hash = ${pushTokenHash} and activation_id <> ${activationId}`.execute(tx)
    await sql`
      insert into push_registration (activation_id, platform, environment, push_token, push_token_hash, updated_at)
      values (${activationId}, ${platform}, ${environment}, ${pushToken}, ${pushTokenHash}, ${at})
      on conflict (activation_id) do update set platform = excluded.platform, environment = excluded.environment,
        push_token = excluded.push_token, push_token_hash = excluded.push_token_hash, updated_at = excluded.updated_at`.execute(
      tx,
    )
    return true
  })
}

/** Where pushes for a user's live activations go. */
export async function listPushRegistrations(db: Db, applicationId: string, userId: string): Promise<readonly PushRegistration[]> {
  return db
    .selectFrom('push_registration')
    .innerJoin('registration', 'registration.activation_id', 'push_registration.activation_id')
    .select([
      'push_registration.activation_id as activationId',
      'push_registration.platform',
      'push_registration.environment',
      'push_registration.push_token as pushToken',
    ])
    .where('registration.application_id', '=', applicationId)
    .where('registration.user_id', '=', userId)
    .execute()
}

export interface PushTarget {
  readonly applicationId: string
  readonly userId: string
  readonly environment: PushEnvironment | null
  /** sealed */
  readonly pushToken: Buffer
  readonly registeredAt: Date
  /** Of the operation that the push tells of; null where there is none. */
  readonly status: OperationStatus | null
  /** Of the message that it tells of; null where there is none. */
  readonly isRead: boolean | null
}

interface PushQuestion {
  readonly activationId: string
  readonly platform: PushPlatform
  /** Operation or message. */
  readonly objectId: string
  readonly at: Date
}

/** Undefined when the activation is not ACTIVE any more, or takes no pushes on this platform. */
export async function findPushTarget(
  db: Db,
  { activationId, platform, objectId, at }: PushQuestion,
): Promise<PushTarget | undefined> {
  const { rows } = await sql<PushTarget>`
    select a.application_id as "applicationId", a.user_id as "userId", p.environment, p.push_token as "pushToken",
      p.updated_at as "registeredAt", (select o.status from operation o where o.operation_id = ${objectId}) as status,
      (select m.is_read from inbox_message m where m.message_id = ${objectId}) as "isRead"
    from push_registration p join activation a on a.activation_id = p.activation_id
    where p.activation_id = ${activationId} and p.platform = ${platform} and ${isActiveAt(at)}`.execute(db)
  return rows[0]
}

/** Deletes a registration if it still is the one that was read; false when it is not. */
export async function forgetPushToken(db: Db, activationId: string, pushToken: Uint8Array): Promise<boolean> {
  const { rows } = await sql`
    delete from push_registration where activation_id = ${activationId} and push_token = ${pushToken} returning activation_id`.execute(
    db,
  )
  return rows.length === 1
}
