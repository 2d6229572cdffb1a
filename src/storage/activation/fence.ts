// Fences a restored database: finds activations whose codes it may have forgotten, and moves them on
// (docs/decisions/0016-fence-after-a-restore.md).
import { type RawBuilder, sql } from 'kysely'
import { insertAuditFrom } from '../audit/audit.ts'
import type { Db } from '../database/database.ts'
import { defineGivenRows } from '../database/bulk-statement.ts'
import { amongWaiting } from '../database/index-conditions.ts'
import { FORGOTTEN, moveDue } from './expiry.ts'
import { insertHistoryFrom } from './history.ts'

/** The reason in the history of a fenced activation, and of its block. */
const FENCED = 'DATABASE_RESTORED'

export interface UnfencedActivation {
  readonly activationId: string
  readonly rowVersion: number
  readonly protocolVersion: number
  readonly counter: number
  /** Sealed. */
  readonly ctrData: Buffer
}

/**
 * Looks at up to `limit` activations with ids after `after`, in order of id. Returns those that were created before `since`, the moment to which the
 * database went back, may have sent codes after it, and were not fenced yet. `last` is the id at which the next look begins, undefined at the end.
 * Only the ids bound what is read: PostgreSQL otherwise reads all activations, or the whole history, for each look.
 */
export async function findUnfenced(
  db: Db,
  since: Date,
  after: string,
  limit: number,
): Promise<{ readonly unfenced: readonly UnfencedActivation[]; readonly last: string | undefined }> {
  const { rows } = await sql<UnfencedActivation & { readonly isUnfenced: boolean }>`
    select a.activation_id as "activationId", a.row_version as "rowVersion", a.protocol_version as "protocolVersion", a.counter,
      a.ctr_data as "ctrData", a.state in ('PENDING_COMMIT', 'ACTIVE', 'BLOCKED') and a.created_at <= ${since}
        and a.ctr_data is not null and a.protocol_version is not null and not exists (
          select from activation_history h
          where h.activation_id = a.activation_id and h.reason = ${FENCED} and h.occurred_at > ${since} offset 0
        ) as "isUnfenced"
    from (select * from activation where activation_id > ${after} order by activation_id limit ${limit}) a
    order by a.activation_id`.execute(db)
  return { unfenced: rows.filter(({ isUnfenced }) => isUnfenced), last: rows.at(-1)?.activationId }
}

/** Makes all tickets that were issued before now invalid: the database may have forgotten which answers were sealed under them (cloud §13.2). */
export async function fenceTickets(db: Db): Promise<void> {
  await sql`insert into ticket_fence (fenced_at) values (clock_timestamp()) on conflict do nothing`.execute(db)
}

export interface FencedActivation {
  readonly activationId: string
  readonly rowVersion: number
  readonly counter: number
  /** Sealed. */
  readonly ctrData: Uint8Array
  /** True: an ACTIVE activation becomes BLOCKED, and a temporary block becomes permanent. */
  readonly blocks: boolean
  /** JSON for the audit log. */
  readonly eventData: string
  readonly at: Date
}

/**
 * Moves the counters of activations that have not changed since they were read, with history and audit rows. An upgrade that waits for its
 * confirmation is deleted: the phone may have confirmed it in the forgotten time. Returns the states of the activations that were moved.
 */
export async function storeFenced(db: Db, rows: readonly FencedActivation[]): Promise<readonly { readonly state: string }[]> {
  // Ordered by id, as in every statement that moves several activations, so that two of them cannot deadlock.
  const ordered = rows.toSorted((one, other) => (one.activationId < other.activationId ? -1 : 1))
  const result = await db.executeQuery<{ state: string }>(FENCE(ordered))
  return result.rows
}

/**
 * Removes up to `limit` CREATED activations from before the database went back, with history and audit rows: a phone may have used the code in the
 * forgotten time. Returns the number of removed ones. After concurrent changes it may be 0 although more are left: isAnyWaiting finds these.
 */
export function removeWaiting(db: Db, since: Date, at: Date, limit: number): Promise<number> {
  // Rows are locked in order of id, as in every statement that moves several activations. They are found by the index of waiting activations; a
  // search in order of id would read all activations.
  const due = sql`
    select a.activation_id, a.state from activation a join (
      select activation_id from activation where ${waitsSince(since)}
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

/** Returns true while removeWaiting has activations to remove. */
export async function isAnyWaiting(db: Db, since: Date): Promise<boolean> {
  const { rows } = await sql`select from activation where ${waitsSince(since)} limit 1`.execute(db)
  return rows.length === 1
}

const waitsSince = (since: Date): RawBuilder<boolean> =>
  sql`${amongWaiting('activation')} and state = 'CREATED' and created_at <= ${since}`

// A process that ran during the restore still caches row versions, and the restored rows would count up to the same numbers. After this jump no
// cached version matches.
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
