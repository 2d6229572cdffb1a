// The table push_registration: where a bank's push sender reaches the phone of an activation, at most one place each (mobile-token §7).
import { sql } from 'kysely'
import type { Db } from './database.ts'
import { isActiveAt } from './seen-state.ts'

export type PushPlatform = 'apns' | 'fcm' | 'hms'
export type PushEnvironment = 'development' | 'production'

export interface PushRegistration {
  readonly activationId: string
  readonly platform: PushPlatform
  readonly environment: PushEnvironment | null
  /** sealed */
  readonly pushToken: Uint8Array
}

/** Stores where pushes go, in place of what was there; false when the activation is not ACTIVE any more. */
export async function putPushRegistration(db: Db, registration: PushRegistration, at: Date): Promise<boolean> {
  const { activationId, platform, environment, pushToken } = registration
  const { rows } = await sql`
    insert into push_registration (activation_id, platform, environment, push_token, updated_at)
    select activation_id, ${platform}::text, ${environment}::text, ${pushToken}::bytea, ${at}::timestamptz
    from activation where activation_id = ${activationId} and ${isActiveAt(at)}
    on conflict (activation_id) do update set platform = excluded.platform, environment = excluded.environment,
      push_token = excluded.push_token, updated_at = excluded.updated_at
    returning activation_id`.execute(db)
  return rows.length === 1
}

/** Where pushes for a user's live activation go. */
export async function findPushRegistration(db: Db, applicationId: string, userId: string): Promise<PushRegistration | undefined> {
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
    .executeTakeFirst()
}
