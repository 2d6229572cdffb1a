// Seals and opens the name and the password that pawl sends to a receiver of webhooks (HTTP Basic). A MAC covers the server that they are for. If
// somebody changes the address of a webhook in the database, pawl does not send them there.
import type { KeyObject } from 'node:crypto'
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import type { Tx } from '../../storage/database/database.ts'
import { lockBasic, type StoredBasic, storeBasicMac, type WebhookRow } from '../../storage/webhook/webhooks.ts'
import type { RecordKeys } from '../secrets/record-keys.ts'
import { authenticateRow, type DecidingRow, isRowAuthentic } from '../secrets/row-mac.ts'
import { ifOpens, places } from '../secrets/secrets.ts'

export interface BasicCredentials {
  /** A name without a colon. */
  readonly username: string
  readonly password: string
}

type Target = Pick<WebhookRow, 'webhookId' | 'url'>

/** Opens `username:password` without a check of their server; undefined when there are none. Do not send the result. */
export const openBasic = (
  recordKeys: RecordKeys,
  { webhookId, basicCredentials }: Pick<WebhookRow, 'webhookId' | 'basicCredentials'>,
): string | undefined =>
  basicCredentials === null ? undefined : fromUtf8(recordKeys.open(places.webhookBasicCredentials(webhookId), basicCredentials))

/**
 * Opens `username:password` for the server of the webhook's URL; undefined when there are none. `key` is the key of the MACs, here and below.
 * Throws SealedRecordError when they were altered, or given for another server.
 */
export function openBasicFor(recordKeys: RecordKeys, key: KeyObject, webhook: Target & StoredBasic): string | undefined {
  const basic = openBasic(recordKeys, webhook)
  if (basic === undefined || isRowAuthentic(key, decidingRow(webhook, basic), webhook.basicMac)) return basic
  throw recordKeys.reportAltered(places.webhookBasicCredentials(webhook.webhookId))
}

/** Seals credentials for the server of the URL, and makes their MAC. */
export function sealBasic(recordKeys: RecordKeys, key: KeyObject, target: Target, basic: BasicCredentials | null): StoredBasic {
  if (basic === null) return { basicCredentials: null, basicMac: null }
  const text = `${basic.username}:${basic.password}`
  return {
    basicCredentials: recordKeys.seal(places.webhookBasicCredentials(target.webhookId), utf8(text)),
    basicMac: authenticateRow(key, decidingRow(target, text)),
  }
}

/**
 * Stores a MAC for all credentials, which are older than the key of the MACs, for the server in their row. Returns ids with servers. Credentials
 * that do not open get none, and are never sent.
 */
export async function sealAllBasic(tx: Tx, recordKeys: RecordKeys, key: KeyObject): Promise<string[]> {
  const sealed: string[] = []
  for (const webhook of await lockBasic(tx)) {
    const basic = ifOpens(() => openBasic(recordKeys, webhook))
    if (basic === undefined) continue
    await storeBasicMac(tx, webhook.webhookId, authenticateRow(key, decidingRow(webhook, basic)))
    sealed.push(`${webhook.webhookId} (${serverOf(webhook.url)})`)
  }
  return sealed
}

/** The origin of a stored address. An address that was changed in the database and is no URL is returned as it is. */
export const serverOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

/** The MAC covers the credentials in the clear, because a new master key changes their sealed form. */
const decidingRow = ({ webhookId, url }: Target, basic: string): DecidingRow => ({
  table: 'webhook',
  fields: [webhookId, serverOf(url), basic],
})
