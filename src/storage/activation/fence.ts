// After a restore: activations whose codes the database may have forgotten, and moving them on (docs/decisions/0016-fence-after-a-restore.md).
import { sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import { amongWaiting } from '../database/index-conditions.ts'
import { FORGOTTEN, moveDue } from './expiry.ts'
import { insertHistoryFrom } from './history.ts'

/** What the history of an activation says that was fenced, and the reason of its block. */
const FENCED = 'DATABASE_RESTORED'

export interface UnfencedActivation {
  readonly activationId: string
  readonly rowVersion: number
  readonly protocolVersion: number
  readonly counter: number
  /** sealed */
  readonly ctrData: Buffer
}

/**
 * Up to `limit` activations behind `after` in the order of their ids: those that are older than the moment to which the database went back,
 * may have sent codes since, and were not fenced since.
 */
export async function findUnfenced(db: Db, since: Date, after: string, limit: number): Promise<readonly UnfencedActivation[]> {
  const { rows } = await sql<UnfencedActivation>`
    select a.activation_id as "activationId", a.row_version as "rowVersion", a.protocol_version as "protocolVersion", a.counter,
      a.ctr_data as "ctrData"
    from activation a
    where a.activation_id > ${after} and a.state in ('PENDING_COMMIT', 'ACTIVE', 'BLOCKED') and a.created_at <= ${since}
      and a.ctr_data is not null and a.protocol_version is not null
      and not exists (
        select from activation_history h
        where h.activation_id = a.activation_id and h.reason = ${FENCED} and h.occurred_at > ${since}
      )
    order by a.activation_id limit ${limit}`.execute(db)
  return rows
}

/** From now on no ticket is good that was issued before: the database may have forgotten what was sealed under it (cloud §13.2). */
export async function fenceTickets(db: Db): Promise<void> {
  await sql`insert into ticket_fence (fenced_at) values (clock_timestamp()) on conflict do nothing`.execute(db)
}

export interface FencedActivation {
  readonly activationId: string
  readonly rowVersion: number
  readonly counter: number
  /** sealed */
  readonly ctrData: Uint8Array
  /** Whether an active one is blocked, and a block that would end by itself has no end any more. */
  readonly blocks: boolean
  /** For the audit log. */
  readonly eventData: string
  readonly at: Date
}

/**
 * Moves the counters of activations that are still as they were read, with history and audit rows. An upgrade that waits for its confirmation
 * is abandoned: its phone may have confirmed it in the time that was forgotten. Gives the states of those that were moved.
 */
export async function storeFenced(db: Db, rows: readonly FencedActivation[]): Promise<readonly { readonly state: string }[]> {
  // In one order, as every statement that moves several activations.
  const ordered = rows.toSorted((one, other) => (one.activationId < other.activationId ? -1 : 1))
  const result = await db.executeQuery<{ state: string }>(FENCE(ordered))
  return result.rows
}

/**
 * Removes up to `limit` activations that wait for a phone since before the database went back: a phone may have used the code in the time
 * that was forgotten. With history and audit rows; gives how many. Where others changed some of them meanwhile it is fewer, though there are more.
 */
export function removeWaiting(db: Db, since: Date, at: Date, limit: number): Promise<number> {
  // Locked in the order of their ids, as every statement that moves several activations. By the index of what waits: by their ids, all would be read.
  const due = sql`
    select a.activation_id, a.state from activation a join (
      select activation_id from activation where ${amongWaiting('activation')} and state = 'CREATED' and created_at <= ${since}
      order by expires_at limit ${limit}
    ) as w on w.activation_id = a.activation_id
    where a.state = 'CREATED' order by a.activation_id for update of a`
  const set = sql`${FORGOTTEN}, row_version = a.row_version + ${sql.lit(FORGOTTEN_VERSIONS)}`
  return moveDue(db, due, {
    to: 'REMOVED',
    set,
    reason: FENCED,
    eventType: 'registration_fenced',
    eventData: '{"removed":true}',
    at,
  })
}

// A process that ran on while the database went back remembers row versions that are counted again: what it remembers must fit no more.
const FORGOTTEN_VERSIONS = 1_000_000

const FENCE = defineGivenRows<FencedActivation>({
  activationId: 'text',
  rowVersion: 'int',
  counter: 'int',
  ctrData: 'bytea',
  blocks: 'boolean',
  eventData: 'text',
  at: 'timestamptz',
}).define(
  (rows) => sql`
  with due as (
    select a.activation_id, a.state as from_state, i.counter, i."ctrData", i.blocks, i."eventData", i.at
    from activation a join ${rows} as i on i."activationId" = a.activation_id
    where a.row_version = i."rowVersion"
    order by a.activation_id
    for update of a
  ), moved as (
    update activation a set counter = due.counter, ctr_data = due."ctrData", row_version = a.row_version + ${sql.lit(FORGOTTEN_VERSIONS)},
      state = case when due.blocks and a.state = 'ACTIVE' then 'BLOCKED' else a.state end,
      blocked_reason = case when due.blocks and a.state in ('ACTIVE', 'BLOCKED') then ${sql.lit(FENCED)} else a.blocked_reason end,
      block_expires_at = case when due.blocks then null else a.block_expires_at end
    from due where a.activation_id = due.activation_id
    returning a.activation_id, a.application_id, a.user_id, due.from_state, a.state, due."eventData", due.at
  ), abandoned as (
    delete from activation_upgrade u using moved where u.activation_id = moved.activation_id
  ), history as (
    ${insertHistoryFrom(sql`moved`, { from: sql`from_state`, to: sql`state`, reason: sql`${sql.lit(FENCED)}`, at: sql`at` })}
  ), audited as (
    ${insertAuditFrom(sql`moved`, {
      eventType: sql`'registration_fenced'`,
      eventData: sql`"eventData"`,
      occurredAt: sql`at`,
    })}
  )
  select state from moved`,
)
