// The name and the password that a receiver is called with (HTTP Basic). They are sealed, and a MAC says for which server they are: whoever gives
// a webhook another address in the database is not sent them.
import type { KeyObject } from 'node:crypto'
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import type { Tx } from '../../storage/database/database.ts'
import { lockBasic, type StoredBasic, storeBasicMac, type WebhookRow } from '../../storage/webhook/webhooks.ts'
import type { RecordKeys } from '../secrets/record-keys.ts'
import { authenticateRow, type DecidingRow, isRowAuthentic } from '../secrets/row-mac.ts'
import { ifOpens, places } from '../secrets/secrets.ts'

export interface BasicCredentials {
  /** Without a colon. */
  readonly username: string
  readonly password: string
}

type Target = Pick<WebhookRow, 'webhookId' | 'url'>

/** `username:password`, whoever they are for; undefined without them. Not to be sent. */
export const openBasic = (
  recordKeys: RecordKeys,
  { webhookId, basicCredentials }: Pick<WebhookRow, 'webhookId' | 'basicCredentials'>,
): string | undefined =>
  basicCredentials === null ? undefined : fromUtf8(recordKeys.open(places.webhookBasicCredentials(webhookId), basicCredentials))

/**
 * `username:password` for the server of the webhook's URL; undefined without them. `key` is that of the MACs, here and below. Throws
 * SealedRecordError when they were altered, and when they were given for another server.
 */
export function openBasicFor(recordKeys: RecordKeys, key: KeyObject, webhook: Target & StoredBasic): string | undefined {
  const basic = openBasic(recordKeys, webhook)
  if (basic === undefined || isRowAuthentic(key, decidingRow(webhook, basic), webhook.basicMac)) return basic
  throw recordKeys.reportAltered(places.webhookBasicCredentials(webhook.webhookId))
}

/** The credentials as they are stored for the server of the URL. */
export function sealBasic(recordKeys: RecordKeys, key: KeyObject, target: Target, basic: BasicCredentials | null): StoredBasic {
  if (basic === null) return { basicCredentials: null, basicMac: null }
  const text = `${basic.username}:${basic.password}`
  return {
    basicCredentials: recordKeys.seal(places.webhookBasicCredentials(target.webhookId), utf8(text)),
    basicMac: authenticateRow(key, decidingRow(target, text)),
  }
}

/**
 * Gives all credentials that are older than the MACs theirs, for the server that the row names; returns ids with servers. What does not open is
 * left: it is not sent either.
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

/** The origin of a stored address. One that was changed in the database may be no URL, and stands for itself. */
export const serverOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

/** The credentials are in it as they are, not as they are sealed: a new master key seals them anew. */
const decidingRow = ({ webhookId, url }: Target, basic: string): DecidingRow => ({
  table: 'webhook',
  fields: [webhookId, serverOf(url), basic],
})
