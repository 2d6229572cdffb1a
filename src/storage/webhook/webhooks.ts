// Stores webhooks, which receive an application's changes, with their recent failures, in the table webhook (cloud §9).
import { type RawBuilder, sql } from 'kysely'
import { toList } from '../database/columns.ts'
import { type Db, type Tx, writesRow } from '../database/database.ts'
import { amongUndelivered } from '../database/index-conditions.ts'
import type { WebhookKind } from '../database/schema.ts'

export interface WebhookRow {
  readonly webhookId: string
  readonly applicationId: string
  readonly name: string
  readonly kind: WebhookKind
  readonly url: string
  readonly attributes: readonly string[]
  /** Sealed. */
  readonly secret: Uint8Array
  /** Sealed. */
  readonly previousSecret: Uint8Array | null
  readonly previousSecretExpiresAt: Date | null
  /** Sealed `username:password`. */
  readonly basicCredentials: Uint8Array | null
  /** MAC over the credentials and the server for which they are; null without credentials. */
  readonly basicMac: Uint8Array | null
  readonly isEnabled: boolean
  readonly disabledReason: string | null
  readonly failuresInRow: number
  /** The end of the last pause that the receiver asked for; null without one. */
  readonly pausedUntil: Date | null
  /** How often administrators have changed the webhook. */
  readonly changeCount: number
  readonly createdAt: Date
}

/** Finds a webhook by its id. */
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
  /** Counted since the webhook was created. */
  readonly delivered: number
  /** Creation of the oldest waiting delivery. */
  readonly waitingSince: Date | null
}

/** Lists webhooks with their figures in order of name; with an id, only that one. */
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

type NewWebhook = Omit<
  WebhookRow,
  'previousSecret' | 'previousSecretExpiresAt' | 'disabledReason' | 'failuresInRow' | 'pausedUntil' | 'changeCount'
>

/** Stores a new webhook. Changes that are committed from now on are written to its outbox. */
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

/** Stored credentials with their MAC; both are null without credentials. */
export type StoredBasic = Pick<WebhookRow, 'basicCredentials' | 'basicMac'>

interface WebhookChange extends Pick<WebhookRow, 'name' | 'url' | 'attributes' | 'isEnabled'> {
  /** Undefined keeps the stored credentials. */
  readonly basic: StoredBasic | undefined
  readonly at: Date
}

/** Changes a webhook, resets its failures, and makes its waiting deliveries due. False when it does not exist. */
export async function updateWebhook(db: Db, webhookId: string, change: WebhookChange): Promise<boolean> {
  const { basic } = change
  const keepsBasic = basic === undefined
  const { rows } = await sql<{ changed: number }>`
    with changed as (
      update webhook set name = ${change.name}, url = ${change.url}, attributes = ${change.attributes.join(',')},
        basic_credentials = case when ${keepsBasic} then basic_credentials else ${basic?.basicCredentials ?? null}::bytea end,
        basic_mac = case when ${keepsBasic} then basic_mac else ${basic?.basicMac ?? null}::bytea end,
        is_enabled = ${change.isEnabled}, disabled_reason = null, failures_in_row = 0, failing_since = null, probe_at = null,
        paused_until = null, change_count = change_count + 1
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

/** Lists the webhooks with credentials, and locks them until the transaction ends. */
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

/** Stores the MAC over the credentials of a locked webhook. */
export async function storeBasicMac(tx: Tx, webhookId: string, basicMac: Uint8Array): Promise<void> {
  await tx.updateTable('webhook').set({ basic_mac: basicMac }).where('webhook_id', '=', webhookId).execute()
}

interface SecretChange {
  /** Sealed; the secret that was read. */
  readonly from: Uint8Array
  /** Sealed. */
  readonly to: Uint8Array
  /** The secret that was read, sealed for the column previous_secret. */
  readonly previous: Uint8Array | null
  readonly previousExpiresAt: Date | null
}

/** Replaces the secret; false when it is no longer the one that was read. */
export async function replaceWebhookSecret(db: Db, webhookId: string, change: SecretChange): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook')
    .set({
      secret: change.to,
      previous_secret: change.previous,
      previous_secret_expires_at: change.previousExpiresAt,
      change_count: sql`change_count + 1`,
    })
    .where('webhook_id', '=', webhookId)
    .where('secret', '=', Buffer.from(change.from))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Deletes a webhook; false when there was none. deleteDeliveriesOf deletes its deliveries. */
export const deleteWebhook = (db: Db, webhookId: string): Promise<boolean> =>
  writesRow(db, sql`delete from webhook where webhook_id = ${webhookId} and ${IS_NO_PROVIDER}`)

interface Outcome {
  /** The webhook when its messages were sent; undefined for a provider of pushes. */
  readonly sentTo: Pick<WebhookRow, 'url' | 'changeCount'> | undefined
}

interface WebhookFailure extends Outcome {
  readonly failed: number
  readonly at: Date
  readonly probeAt: Date
  /** Null unless the receiver asked for a pause. */
  readonly pausedUntil: Date | null
  /** The reason for disabling the webhook; null keeps it enabled. */
  readonly disabledReason: string | null
}

/** Counts failed attempts. False, with nothing counted, when an administrator has changed or removed the webhook since. */
export async function storeWebhookFailure(db: Db, webhookId: string, failure: WebhookFailure): Promise<boolean> {
  const { failed, at, probeAt, pausedUntil, disabledReason } = failure
  const { rows } = await sql`
    update webhook set failures_in_row = failures_in_row + ${failed}, failing_since = coalesce(failing_since, ${at}::timestamptz),
      probe_at = ${probeAt}, paused_until = greatest(paused_until, ${pausedUntil}::timestamptz),
      is_enabled = is_enabled and ${disabledReason}::text is null, disabled_reason = coalesce(${disabledReason}::text, disabled_reason)
    where webhook_id = ${webhookId} and ${isUnchanged(failure)} returning webhook_id`.execute(db)
  return rows.length === 1
}

interface WebhookSuccess extends Outcome {
  readonly delivered: number
  readonly at: Date
  /** Waiting deliveries become due when the webhook has been failing since this time or earlier. */
  readonly failingSince: Date
}

/**
 * Counts deliveries, and resets the failures unless an administrator has changed the webhook since. After a longer failure every waiting delivery
 * becomes due at once.
 */
export async function storeWebhookSuccess(db: Db, webhookId: string, success: WebhookSuccess): Promise<void> {
  // The webhook is locked before its deliveries, and a transaction that holds a delivery waits for no webhook. A delivery that is locked is being
  // stored after an attempt, so it is skipped.
  await sql`
    with before as (
      select webhook_id, failing_since, ${isUnchanged(success)} as is_unchanged from webhook where webhook_id = ${webhookId} for update
    ), counted as (
      update webhook w set delivered_count = w.delivered_count + ${success.delivered},
        failures_in_row = case when is_unchanged then 0 else w.failures_in_row end,
        failing_since = case when is_unchanged then null else w.failing_since end,
        probe_at = case when is_unchanged then null else w.probe_at end
      from before where w.webhook_id = before.webhook_id
      returning w.webhook_id, case when is_unchanged then before.failing_since end as failing_since
    )
    update webhook_delivery set next_attempt_at = ${success.at} where sequence in (
      select d.sequence from webhook_delivery d join counted on counted.webhook_id = d.webhook_id
      where counted.failing_since <= ${success.failingSince} and ${amongUndelivered('d')} and d.next_attempt_at > ${success.at}
      for update of d skip locked
    )`.execute(db)
}

/** True while no administrator has changed the webhook since its messages were sent. A process of the version before counts no changes. */
const isUnchanged = ({ sentTo }: Outcome): RawBuilder<boolean> =>
  sql<boolean>`coalesce(change_count = ${sentTo?.changeCount ?? null}::int and url = ${sentTo?.url ?? null}, true)`

/** The latest times that a correct clock sets now; a later stored time was set before the clock was set back. */
interface WebhookBounds {
  readonly at: Date
  readonly probeLatest: Date
  readonly pauseLatest: Date
  readonly failingLatest: Date
  /** Replaces a start of failures that lies in the future; it is old enough that the next success makes waiting deliveries due. */
  readonly failingSince: Date
}

/** Makes webhooks due that would wait for too long because the clock was set back. */
export async function bringBackWebhooks(db: Db, bounds: WebhookBounds): Promise<void> {
  const { at, probeLatest, pauseLatest, failingLatest, failingSince } = bounds
  const isPauseLate = sql`paused_until > ${pauseLatest}`
  // A pause that the receiver may have asked for also delays the probe.
  const isProbeLate = sql`(probe_at > ${probeLatest} and (paused_until is null or probe_at > paused_until or ${isPauseLate}))`
  await sql`
    update webhook set probe_at = case when ${isProbeLate} then ${at} else probe_at end,
      paused_until = case when ${isPauseLate} then null else paused_until end,
      failing_since = case when failing_since > ${failingLatest} then ${failingSince} else failing_since end
    where webhook_id in (
      select webhook_id from webhook where ${isPauseLate} or ${isProbeLate} or failing_since > ${failingLatest} for update skip locked
    )`.execute(db)
}

/** Excludes the rows of push providers (push-providers.ts). */
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
  'paused_until as pausedUntil',
  'change_count as changeCount',
  'created_at as createdAt',
] as const
