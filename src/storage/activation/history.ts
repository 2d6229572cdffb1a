// The table activation_history.
import type { Db } from '../database.ts'

export interface HistoryRow {
  readonly fromState: string | null
  readonly toState: string
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date
}

/** What happened to an activation, newest first. */
export async function listActivationHistory(db: Db, activationId: string, limit: number): Promise<HistoryRow[]> {
  return db
    .selectFrom('activation_history')
    .select([
      'from_state as fromState',
      'to_state as toState',
      'reason',
      'external_user_id as externalUserId',
      'occurred_at as occurredAt',
    ])
    .where('activation_id', '=', activationId)
    .orderBy('activation_history_id', 'desc')
    .limit(limit)
    .execute()
}
