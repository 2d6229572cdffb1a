// Reads and writes the table activation_history: the changes of each activation and their times. Rows are only appended, in the same statement as
// the change.
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database/database.ts'

/** The columns of history rows: values, or expressions over the rows that changed. */
interface HistoryColumns {
  /** Left out when the activation had no state before. */
  readonly from?: string | RawBuilder<unknown>
  readonly to: string | RawBuilder<unknown>
  readonly reason?: string | null | RawBuilder<unknown>
  readonly externalUserId?: string | null | RawBuilder<unknown>
  readonly at: Date | RawBuilder<unknown>
}

/** Composes the insert of history rows. `rows` is the text after `from`, and has a column `activation_id`. */
export const insertHistoryFrom = (
  rows: RawBuilder<unknown>,
  { from = NONE, to, reason = NONE, externalUserId = NONE, at }: HistoryColumns,
): RawBuilder<unknown> => sql`insert into activation_history (activation_id, from_state, to_state, reason, external_user_id, occurred_at)
    select activation_id, ${from}::text, ${to}::text, ${reason}::text, ${externalUserId}::text, ${at}::timestamptz from ${rows}`

const NONE = sql`null`

export interface HistoryRow {
  /** Grows with each row. */
  readonly sequence: string
  readonly fromState: string | null
  readonly toState: string
  readonly reason: string | null
  readonly externalUserId: string | null
  readonly occurredAt: Date
}

/** Selects the rows of an activation's history. */
interface HistorySearch {
  readonly limit: number
  /** Only rows older than this sequence. */
  readonly before?: string | null
  /** Only changes at this time or later. */
  readonly from?: Date | null
  /** Only changes at this time or earlier. */
  readonly to?: Date | null
}

/** Lists the changes of an activation, newest first. */
export async function listActivationHistory(
  db: Db,
  activationId: string,
  { limit, before = null, from = null, to = null }: HistorySearch,
): Promise<HistoryRow[]> {
  return db
    .selectFrom('activation_history')
    .select([
      'activation_history_id as sequence',
      'from_state as fromState',
      'to_state as toState',
      'reason',
      'external_user_id as externalUserId',
      'occurred_at as occurredAt',
    ])
    .where('activation_id', '=', activationId)
    .$if(before !== null, (query) => query.where('activation_history_id', '<', before))
    .$if(from !== null, (query) => query.where('occurred_at', '>=', from))
    .$if(to !== null, (query) => query.where('occurred_at', '<=', to))
    .orderBy('activation_history_id', 'desc')
    .limit(limit)
    .execute()
}
