// Reads the database for metrics in one statement. Each part uses an index and is bounded, however many rows have accumulated.
import { sql } from 'kysely'
import { type Db, onlyRow } from './database/database.ts'
import { amongPending, amongUndelivered } from './database/index-conditions.ts'
import { IS_DURABLE } from './database/requirements.ts'

/** Figures for metrics. Times are seconds since 1970. */
export interface VitalSigns {
  /** True when commits survive a crash of the database. */
  readonly isDurable: boolean
  /** Operations without a decision. At most PENDING_MAX are counted, in order of expiry. */
  readonly operations: { readonly pending: number; readonly oldest: number | null }
  /** The first 200 webhooks in order of id; at most 10,000 messages of each are counted. */
  readonly webhooks: readonly {
    readonly webhookId: string
    readonly isEnabled: boolean
    readonly failuresInRow: number
    readonly waiting: number
    readonly oldest: number | null
  }[]
  /** The oldest waiting row of each audit log; for devices the oldest among 10,000 waiting rows. */
  readonly audit: readonly { readonly log: string; readonly oldest: number | null }[]
  /** The first 200 pinned domains. */
  readonly certificates: readonly {
    readonly applicationId: string
    readonly domain: string
    /** Expiry of the pinned certificate that lasts longest; `Infinity` as text when it was set to that in the database. */
    readonly pinned: number | string | null
    /** Expiry of the certificate that the watcher saw; text as above. */
    readonly live: number | string | null
  }[]
}

/** Reads the figures in one statement. */
export async function readVitalSigns(db: Db): Promise<VitalSigns> {
  const { rows } = await sql<VitalSigns>`
    select ${IS_DURABLE} as "isDurable",
      (select json_build_object('pending', count(*), 'oldest', extract(epoch from min(created_at)))
        from (select created_at from operation where ${amongPending('operation')} order by expires_at limit ${PENDING_MAX}) p) as operations,
      (select coalesce(json_agg(json_build_object('webhookId', w.webhook_id, 'isEnabled', w.is_enabled,
          'failuresInRow', w.failures_in_row, 'waiting', d.waiting, 'oldest', d.oldest)), '[]')
        from (select webhook_id, is_enabled, failures_in_row from webhook order by webhook_id limit ${LISTED_MAX}) w
        cross join lateral (
          select count(*) as waiting, extract(epoch from min(created_at)) as oldest from (
            select created_at from webhook_delivery where webhook_id = w.webhook_id and ${amongUndelivered('webhook_delivery')}
            order by next_attempt_at, sequence limit ${WAITING_MAX}
          ) m
        ) d) as webhooks,
      json_build_array(
        json_build_object('log', 'devices', 'oldest', (select extract(epoch from min(occurred_at))
          from (select occurred_at from audit_pending limit ${WAITING_MAX}) u)),
        json_build_object('log', 'administrators', 'oldest', (select extract(epoch from occurred_at)
          from admin_event where position is null order by sequence limit 1))) as audit,
      (select coalesce(json_agg(json_build_object('applicationId', d.application_id, 'domain', d.domain,
          'pinned', extract(epoch from (select max(expires_at) from pinned_certificate c
            where c.application_id = d.application_id and c.domain = d.domain)),
          'live', extract(epoch from d.live_expires_at))), '[]')
        from (select application_id, domain, live_expires_at from pinned_domain order by application_id, domain limit ${LISTED_MAX}) d
      ) as certificates`.execute(db)
  return onlyRow(rows)
}

const PENDING_MAX = 100_000
const LISTED_MAX = 200
const WAITING_MAX = 10_000
