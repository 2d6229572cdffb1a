// The table webhook: receivers of an application's changes, and how each of them is doing (cloud §9).
import { sql } from 'kysely'
import { toList } from '../database/columns.ts'
import type { Db, Tx } from '../database/database.ts'
import { amongUndelivered } from '../database/index-conditions.ts'
import type { WebhookKind } from '../database/schema.ts'

export interface WebhookRow {
  readonly webhookId: string
  readonly applicationId: string
  readonly name: string
  readonly kind: WebhookKind
  readonly url: string
  readonly attributes: readonly string[]
  /** sealed */
  readonly secret: Uint8Array
  /** sealed */
  readonly previousSecret: Uint8Array | null
  readonly previousSecretExpiresAt: Date | null
  /** sealed; username:password */
  readonly basicCredentials: Uint8Array | null
  /** Over the credentials and the server that they are for; null without them. */
  readonly basicMac: Uint8Array | null
  readonly isEnabled: boolean
  readonly disabledReason: string | null
  readonly failuresInRow: number
  readonly createdAt: Date
}

/** A webhook by its id. */
export async function findWebhook(db: Db, webhookId: string): Promise<WebhookRow | undefined> {
  const row = await db
    .selectFrom('webhook')
    .select(webhookColumns)
    .where('webhook_id', '=', webhookId)
    .where(IS_NO_PROVIDER)
    .executeTakeFirst()
  return row && { ...row, attributes: toList(row.attributes) }
}

export interface WebhookFigures {
  readonly waiting: number
  readonly dead: number
  /** Since the webhook was created. */
  readonly delivered: number
  /** Of the oldest waiting delivery. */
  readonly waitingSince: Date | null
}

/** Webhooks with their figures, by name; with an id that one alone. */
export async function listWebhooks(db: Db, webhookId: string | null): Promise<readonly (WebhookRow & WebhookFigures)[]> {
  const rows = await db
    .selectFrom('webhook')
    .select([
      ...webhookColumns,
      sql<number>`delivered_count::float8`.as('delivered'),
      sql<number>`(select count(*)::int from webhook_delivery d where d.webhook_id = webhook.webhook_id and ${amongUndelivered('d')})`.as(
        'waiting',
      ),
      sql<number>`(select count(*)::int from webhook_delivery d where d.webhook_id = webhook.webhook_id and d.status = 'DEAD')`.as(
        'dead',
      ),
      sql<Date | null>`(select min(created_at) from webhook_delivery d where d.webhook_id = webhook.webhook_id and ${amongUndelivered('d')})`.as(
        'waitingSince',
      ),
    ])
    .where(sql<boolean>`(${webhookId}::text is null or webhook_id = ${webhookId})`)
    .where(IS_NO_PROVIDER)
    .orderBy('name')
    .orderBy('webhook_id')
    .execute()
  return rows.map((row) => ({ ...row, attributes: toList(row.attributes) }))
}

type NewWebhook = Omit<WebhookRow, 'previousSecret' | 'previousSecretExpiresAt' | 'disabledReason' | 'failuresInRow'>

/** Stores a new webhook; changes committed from now on are written to its outbox. */
export async function insertWebhook(db: Db, webhook: NewWebhook): Promise<void> {
  await db
    .insertInto('webhook')
    .values({
      webhook_id: webhook.webhookId,
      application_id: webhook.applicationId,
      name: webhook.name,
      kind: webhook.kind,
      url: webhook.url,
      attributes: webhook.attributes.join(','),
      secret: webhook.secret,
      basic_credentials: webhook.basicCredentials,
      basic_mac: webhook.basicMac,
      is_enabled: webhook.isEnabled,
      created_at: webhook.createdAt,
    })
    .execute()
}

/** Credentials as they are stored; both are null for none. */
export type StoredBasic = Pick<WebhookRow, 'basicCredentials' | 'basicMac'>

interface WebhookChange extends Pick<WebhookRow, 'name' | 'url' | 'attributes' | 'isEnabled'> {
  /** Undefined keeps what is stored. */
  readonly basic: StoredBasic | undefined
  readonly at: Date
}

/** Changes a webhook, forgets how it has failed, and makes all that waits for it due. False when it does not exist. */
export async function updateWebhook(db: Db, webhookId: string, change: WebhookChange): Promise<boolean> {
  const { basic } = change
  const keepsBasic = basic === undefined
  const { rows } = await sql<{ changed: number }>`
    with changed as (
      update webhook set name = ${change.name}, url = ${change.url}, attributes = ${change.attributes.join(',')},
        basic_credentials = case when ${keepsBasic} then basic_credentials else ${basic?.basicCredentials ?? null}::bytea end,
        basic_mac = case when ${keepsBasic} then basic_mac else ${basic?.basicMac ?? null}::bytea end,
        is_enabled = ${change.isEnabled}, disabled_reason = null, failures_in_row = 0, failing_since = null, probe_at = null,
        paused_until = null
      where webhook_id = ${webhookId} returning webhook_id
    ), due as (
      update webhook_delivery set next_attempt_at = ${change.at} where sequence in (
        select d.sequence from webhook_delivery d join changed on changed.webhook_id = d.webhook_id
        where ${amongUndelivered('d')} and d.next_attempt_at > ${change.at} for update of d skip locked
      )
    )
    select count(*)::int as changed from changed`.execute(db)
  return rows[0]?.changed === 1
}

/** Webhooks with credentials, which nobody changes until the transaction ends. */
export const lockBasic = async (tx: Tx): Promise<readonly LockedBasic[]> =>
  tx
    .selectFrom('webhook')
    .select(['webhook_id as webhookId', 'url', 'basic_credentials as basicCredentials'])
    .where('basic_credentials', 'is not', null)
    .where(IS_NO_PROVIDER)
    .orderBy('webhook_id')
    .forUpdate()
    .execute()

type LockedBasic = Pick<WebhookRow, 'webhookId' | 'url' | 'basicCredentials'>

/** Stores the MAC over the credentials of a webhook that is locked. */
export async function storeBasicMac(tx: Tx, webhookId: string, basicMac: Uint8Array): Promise<void> {
  await tx.updateTable('webhook').set({ basic_mac: basicMac }).where('webhook_id', '=', webhookId).execute()
}

interface SecretChange {
  /** sealed; what was read */
  readonly from: Uint8Array
  /** sealed */
  readonly to: Uint8Array
  /** sealed; the one that was read, for its new place */
  readonly previous: Uint8Array | null
  readonly previousExpiresAt: Date | null
}

/** Replaces the secret, if it is still the one that was read. */
export async function replaceWebhookSecret(db: Db, webhookId: string, change: SecretChange): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook')
    .set({ secret: change.to, previous_secret: change.previous, previous_secret_expires_at: change.previousExpiresAt })
    .where('webhook_id', '=', webhookId)
    .where('secret', '=', Buffer.from(change.from))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Deletes a webhook; false when there was none. Its deliveries are left to deleteDeliveriesOf. */
export async function deleteWebhook(db: Db, webhookId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('webhook')
    .where('webhook_id', '=', webhookId)
    .where(IS_NO_PROVIDER)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

interface WebhookFailure {
  /** The address that failed; undefined for a provider of pushes. */
  readonly url: string | undefined
  readonly failed: number
  readonly at: Date
  readonly probeAt: Date
  /** Null without a wish of the receiver. */
  readonly pausedUntil: Date | null
  /** Set to disable the webhook. */
  readonly disabledReason: string | null
}

/** Counts failed attempts. False when the webhook has another address by now, or is gone: then nothing is counted. */
export async function storeWebhookFailure(db: Db, webhookId: string, failure: WebhookFailure): Promise<boolean> {
  const { url = null, failed, at, probeAt, pausedUntil, disabledReason } = failure
  const { rows } = await sql`
    update webhook set failures_in_row = failures_in_row + ${failed}, failing_since = coalesce(failing_since, ${at}::timestamptz),
      probe_at = ${probeAt}, paused_until = greatest(paused_until, ${pausedUntil}::timestamptz),
      is_enabled = is_enabled and ${disabledReason}::text is null, disabled_reason = coalesce(${disabledReason}::text, disabled_reason)
    where webhook_id = ${webhookId} and (${url}::text is null or url = ${url}) returning webhook_id`.execute(db)
  return rows.length === 1
}

interface WebhookSuccess {
  readonly delivered: number
  readonly at: Date
  /** One that has failed since then or longer is caught up. */
  readonly failingSince: Date
}

/** Counts deliveries. After a longer failure everything that waits becomes due at once. */
export async function storeWebhookSuccess(db: Db, webhookId: string, success: WebhookSuccess): Promise<void> {
  // The webhook is locked before its deliveries, and a transaction that holds a delivery waits for no webhook. What is being stored at this
  // moment is left out: it has just been tried.
  await sql`
    with before as (
      select webhook_id, failing_since from webhook where webhook_id = ${webhookId} for update
    ), counted as (
      update webhook w set delivered_count = w.delivered_count + ${success.delivered}, failures_in_row = 0, failing_since = null,
        probe_at = null
      from before where w.webhook_id = before.webhook_id returning w.webhook_id, before.failing_since
    )
    update webhook_delivery set next_attempt_at = ${success.at} where sequence in (
      select d.sequence from webhook_delivery d join counted on counted.webhook_id = d.webhook_id
      where counted.failing_since <= ${success.failingSince} and ${amongUndelivered('d')} and d.next_attempt_at > ${success.at}
      for update of d skip locked
    )`.execute(db)
}

/** The latest moments that are put off to; what is later was to come by a clock that was set back. */
interface WebhookBounds {
  readonly at: Date
  readonly probeLatest: Date
  readonly pauseLatest: Date
  readonly failingLatest: Date
  /** In place of a beginning of failures that is yet to come: long enough ago for what waits to be caught up. */
  readonly failingSince: Date
}

/** Makes webhooks due that a clock which was set back keeps from their receivers. */
export async function bringBackWebhooks(db: Db, bounds: WebhookBounds): Promise<void> {
  const { at, probeLatest, pauseLatest, failingLatest, failingSince } = bounds
  const isPauseLate = sql`paused_until > ${pauseLatest}`
  // A pause that the receiver may have asked for puts its probe off as well.
  const isProbeLate = sql`(probe_at > ${probeLatest} and (paused_until is null or probe_at > paused_until or ${isPauseLate}))`
  await sql`
    update webhook set probe_at = case when ${isProbeLate} then ${at} else probe_at end,
      paused_until = case when ${isPauseLate} then null else paused_until end,
      failing_since = case when failing_since > ${failingLatest} then ${failingSince} else failing_since end
    where webhook_id in (
      select webhook_id from webhook where ${isPauseLate} or ${isProbeLate} or failing_since > ${failingLatest} for update skip locked
    )`.execute(db)
}

/** It is what administrators make, and no provider of pushes (push-providers.ts). */
const IS_NO_PROVIDER = sql<boolean>`kind <> 'PUSH'`

const webhookColumns = [
  'webhook_id as webhookId',
  'application_id as applicationId',
  'name',
  'kind',
  'url',
  'attributes',
  'secret',
  'previous_secret as previousSecret',
  'previous_secret_expires_at as previousSecretExpiresAt',
  'basic_credentials as basicCredentials',
  'basic_mac as basicMac',
  'is_enabled as isEnabled',
  'disabled_reason as disabledReason',
  'failures_in_row as failuresInRow',
  'created_at as createdAt',
] as const
