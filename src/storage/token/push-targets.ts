// Where a push goes, read when it is sent, and tokens that their provider does not know any more (mobile-token §7.1).
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { isActiveAt } from '../activation/seen-state.ts'
import type { OperationStatus } from '../database/schema.ts'
import type { PushEnvironment, PushPlatform } from './push-registrations.ts'

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
