// Stores the providers of pushes, which are rows of the table webhook, because pawl delivers to them as to webhooks (mobile-token §7.1). The id of
// a provider is its platform. While a provider is enabled, triggers insert pushes for it (migrations/0037).
import { sql } from 'kysely'
import type { Db } from '../database/database.ts'
import { amongUndelivered } from '../database/index-conditions.ts'
import type { WebhookFigures } from './webhooks.ts'

export type PushProvider = 'apns' | 'fcm'

interface NewPushProvider {
  readonly provider: PushProvider
  readonly url: string
}

/** Enables these providers and no others. Writes nothing when that is the case already. */
export async function enablePushProviders(db: Db, providers: readonly NewPushProvider[], at: Date): Promise<void> {
  const names = providers.map(({ provider }) => provider)
  const urls = providers.map(({ url }) => url)
  await sql`
    with others as (
      update webhook set is_enabled = false where kind = 'PUSH' and is_enabled and webhook_id <> all (${names}::text[])
    )
    insert into webhook as w (webhook_id, name, kind, url, attributes, created_at)
    select name, name, 'PUSH', url, '', ${at}::timestamptz from unnest(${names}::text[], ${urls}::text[]) as given (name, url)
    on conflict (webhook_id) do update set url = excluded.url, is_enabled = true, failures_in_row = 0, failing_since = null,
      probe_at = null, paused_until = null
    where not w.is_enabled or w.url <> excluded.url`.execute(db)
}

/** Figures of a provider; `delivered` counts from its first start. */
interface PushProviderFigures extends WebhookFigures {
  readonly provider: PushProvider
  readonly isEnabled: boolean
  readonly failuresInRow: number
  /** The error of the newest push that waits for another attempt, else of the newest dead one. */
  readonly lastError: string | null
}

/** Lists the providers that are or were enabled, in order of id, with their figures. */
export async function listPushProviders(db: Db): Promise<readonly PushProviderFigures[]> {
  const { rows } = await sql<PushProviderFigures>`
    select w.webhook_id as provider, w.is_enabled as "isEnabled", w.delivered_count::float8 as delivered,
      (select count(*)::int from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')}) as waiting,
      (select count(*)::int from webhook_delivery d where d.webhook_id = w.webhook_id and d.status = 'DEAD') as dead,
      (select min(created_at) from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')}) as "waitingSince",
      w.failures_in_row as "failuresInRow",
      coalesce(
        (select d.last_error from webhook_delivery d where d.webhook_id = w.webhook_id and ${amongUndelivered('d')} and d.last_error is not null
          order by d.sequence desc limit 1),
        (select d.last_error from webhook_delivery d where d.webhook_id = w.webhook_id and d.status = 'DEAD' order by d.sequence desc limit 1)
      ) as "lastError"
    from webhook w where w.kind = 'PUSH' order by w.webhook_id`.execute(db)
  return rows
}
