// Stores the push token of each activation's phone, at most one, in the table push_registration (mobile-token §7).
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
  /** Sealed. */
  readonly pushToken: Uint8Array
}

interface NewPushRegistration extends PushRegistration {
  /** Keyed hash, 32 bytes; finds another activation that has the token. */
  readonly pushTokenHash: Uint8Array
}

/**
 * Stores a push registration in place of an earlier one, and deletes the one of any other activation with the same token. False, with nothing
 * changed, when the activation is not ACTIVE. The row version is incremented, so that a concurrent removal reads again, and then deletes this
 * registration.
 */
export async function putPushRegistration(db: Pool, registration: NewPushRegistration, at: Date): Promise<boolean> {
  const { activationId, platform, environment, pushToken, pushTokenHash } = registration
  return inTransaction(db, async (tx) => {
    // The activation is locked before its push registration, in the same order as by a removal; whoever waits for this lock holds up nobody else.
    const { rows } = await sql`
      update activation set row_version = row_version + 1 where activation_id = ${activationId} and ${isActiveAt(at)}
      returning activation_id`.execute(tx)
    if (rows.length === 0) return false
    // One registration at a time: two activations that exchange their tokens would otherwise deadlock. Phones register rarely.
    await sql`select pg_advisory_xact_lock(hashtextextended('pawl.push_registration', 0))`.execute(tx)
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

/** Lists the push registrations of a user's live activations. */
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
  /** Sealed. */
  readonly pushToken: Buffer
  readonly registeredAt: Date
  /** Status of the operation that the push is about; null without one. */
  readonly status: OperationStatus | null
  /** True when the message that the push is about was read; null without one. */
  readonly isRead: boolean | null
}

interface PushQuestion {
  readonly activationId: string
  readonly platform: PushPlatform
  /** Id of an operation or a message. */
  readonly objectId: string
  readonly at: Date
}

/** Finds the push token of an activation. Undefined when the activation is not ACTIVE, or has no token of this platform. */
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

/** Deletes a push registration if its token is still the given one; false otherwise. */
export async function forgetPushToken(db: Db, activationId: string, pushToken: Uint8Array): Promise<boolean> {
  const { rows } = await sql`
    delete from push_registration where activation_id = ${activationId} and push_token = ${pushToken} returning activation_id`.execute(
    db,
  )
  return rows.length === 1
}
