// Creates, changes, reads and removes webhooks, as administrators configure them: address, attributes, secret (cloud §9).
import type { KeyObject } from 'node:crypto'
import { equalConstantTime } from '../../lib/bytes.ts'
import { administrationRefused, notFound, PawlError, type Violation } from '../../lib/errors.ts'
import { findTargetProblem, type TargetRules } from '../../lib/outbound.ts'
import { untilSettled } from '../../lib/until-settled.ts'
import { findApplication } from '../../storage/application/applications.ts'
import type { WebhookKind } from '../../storage/database/schema.ts'
import { deleteDeliveriesOf, replayDeadDeliveries, replayDelivery } from '../../storage/webhook/deliveries.ts'
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  replaceWebhookSecret,
  updateWebhook,
  type WebhookRow,
} from '../../storage/webhook/webhooks.ts'
import { type DomainParts, ifOpens, type KeyParts, places } from '../secrets/secrets.ts'
import { type BasicCredentials, sealBasic, serverOf } from './basic.ts'
import { attributesOf, formatSecret } from './message.ts'
import type { PushSenders } from '../push/senders.ts'
import type { ReadTemplateTexts } from '../template/reader.ts'

/** Parts of the process for webhooks and their messages. */
export interface DeliveryParts extends DomainParts {
  readonly installationKeys: { readonly webhookMac: KeyObject }
  readonly templateTexts: ReadTemplateTexts
  readonly pushSenders: PushSenders
  readonly settings: TargetRules & { readonly webhookRetryBaseSeconds: number }
}

/** The settings of a webhook that may change. */
interface WebhookTarget extends Pick<WebhookRow, 'name' | 'url' | 'attributes' | 'isEnabled'> {
  /** Undefined keeps the stored credentials, null removes them. */
  readonly basic: BasicCredentials | null | undefined
}

/**
 * Creates a webhook, with a new id unless one is given. Throws REQUEST_INVALID for its URL or attributes, and ADMINISTRATION_REFUSED when the
 * application does not exist.
 */
export async function createWebhook(
  parts: KeyParts & Pick<DeliveryParts, 'installationKeys'> & { readonly settings: TargetRules },
  {
    applicationId,
    kind,
    webhookId = parts.platform.uuid(),
    ...target
  }: WebhookTarget & { applicationId: string; kind: WebhookKind; webhookId?: string },
): Promise<{ webhookId: string; secret: string }> {
  checkWebhook(parts, kind, target)
  if ((await findApplication(parts.db, applicationId)) === undefined) throw notFound('application', applicationId)
  const secret = parts.platform.randomBytes(SECRET_BYTES)
  await insertWebhook(parts.db, {
    webhookId,
    applicationId,
    name: target.name,
    kind,
    url: target.url,
    attributes: target.attributes,
    secret: parts.recordKeys.seal(places.webhookSecret(webhookId), secret),
    ...sealBasic(parts.recordKeys, parts.installationKeys.webhookMac, { webhookId, url: target.url }, target.basic ?? null),
    isEnabled: target.isEnabled,
    createdAt: new Date(parts.platform.now()),
  })
  return { webhookId, secret: formatSecret(secret) }
}

/**
 * Changes a webhook; its waiting deliveries are tried at once. Throws as createWebhook does, and REQUEST_INVALID when credentials would be kept for
 * another server.
 */
export async function changeWebhook(parts: DeliveryParts, webhookId: string, target: WebhookTarget): Promise<void> {
  const { recordKeys, installationKeys } = parts
  const { kind, url, basicCredentials } = await readWebhook(parts, webhookId)
  checkWebhook(parts, kind, target)
  if (target.basic === undefined && basicCredentials !== null && serverOf(url) !== serverOf(target.url)) {
    // Nobody can read the password back, so a caller who may change the address must not have it sent there.
    const violations = [{ fieldName: 'basic', hint: 'must be given again, or be null, for another server' }]
    throw new PawlError('REQUEST_INVALID', { detail: 'credentials of another server', violations })
  }
  const isChanged = await updateWebhook(parts.db, webhookId, {
    name: target.name,
    url: target.url,
    attributes: target.attributes,
    basic:
      target.basic === undefined
        ? undefined
        : sealBasic(recordKeys, installationKeys.webhookMac, { webhookId, url: target.url }, target.basic),
    isEnabled: target.isEnabled,
    at: new Date(parts.platform.now()),
  })
  if (!isChanged) throw notFound('webhook', webhookId)
}

/** Makes and returns a new secret. For `keepPreviousSeconds` messages are also signed with the previous one, unless that one does not open. */
export async function rotateWebhookSecret(parts: KeyParts, webhookId: string, keepPreviousSeconds: number): Promise<string> {
  const { db, platform, recordKeys } = parts
  const place = places.webhookSecret(webhookId)
  const open = (sealed: Uint8Array): Uint8Array => ifOpens(() => recordKeys.open(place, sealed)) ?? NOT_OPENED
  const next = platform.randomBytes(SECRET_BYTES)
  const first = await readWebhook(parts, webhookId)
  const previous = open(first.secret)
  const isKept = keepPreviousSeconds > 0 && previous.length > 0
  await untilSettled(`webhook ${webhookId}`, async (round) => {
    const { secret: from } = round === 0 ? first : await readWebhook(parts, webhookId)
    // Of two simultaneous rotations one is refused, and its secret was never used. A new master key changes only the sealed form of the secret.
    if (!equalConstantTime(open(from), previous))
      throw administrationRefused('webhook', `the secret of webhook ${webhookId} was replaced at the same time`)
    const isReplaced = await replaceWebhookSecret(db, webhookId, {
      from,
      to: recordKeys.seal(place, next),
      previous: isKept ? recordKeys.seal(places.webhookPreviousSecret(webhookId), previous) : null,
      previousExpiresAt: isKept ? new Date(platform.now() + keepPreviousSeconds * 1000) : null,
    })
    return isReplaced || undefined
  })
  return formatSecret(next)
}

/** Removes a webhook. Call removeDeliveries after the commit, because until then new deliveries may be added. */
export async function removeWebhook({ db }: Pick<DomainParts, 'db'>, webhookId: string): Promise<void> {
  if (!(await deleteWebhook(db, webhookId))) throw notFound('webhook', webhookId)
}

/** Removes all deliveries of a removed webhook. */
export async function removeDeliveries({ db }: Pick<DomainParts, 'db'>, webhookId: string): Promise<void> {
  while ((await deleteDeliveriesOf(db, webhookId, BATCH_ROWS)) === BATCH_ROWS);
}

/** Puts one delivery, or up to 10,000 dead ones, back into the outbox under their ids. Returns their number. */
export async function replayDeliveries(
  parts: Pick<DomainParts, 'db'>,
  webhookId: string,
  deliveryId: string | undefined,
): Promise<number> {
  await readWebhook(parts, webhookId)
  if (deliveryId !== undefined) {
    if (await replayDelivery(parts.db, webhookId, deliveryId)) return 1
    throw notFound('delivery', `${deliveryId} of webhook ${webhookId}`)
  }
  let replayed = 0
  // Each batch is a statement of its own, which a limit of time ends. A caller that gets the maximum calls again.
  for (let batch = 0; batch < REPLAY_BATCHES_MAX; batch += 1) {
    const count = await replayDeadDeliveries(parts.db, webhookId, BATCH_ROWS)
    replayed += count
    if (count < BATCH_ROWS) break
  }
  return replayed
}

/** Reads a webhook. Throws ADMINISTRATION_REFUSED when there is none. */
export async function readWebhook({ db }: Pick<DomainParts, 'db'>, webhookId: string): Promise<WebhookRow> {
  const webhook = await findWebhook(db, webhookId)
  if (webhook === undefined) throw notFound('webhook', webhookId)
  return webhook
}

/** Throws REQUEST_INVALID for a URL or attributes that a webhook of this kind cannot have. */
export function checkWebhook(
  { settings }: { readonly settings: TargetRules },
  kind: WebhookKind,
  { url, attributes }: Pick<WebhookTarget, 'url' | 'attributes'>,
): void {
  const violations: Violation[] = []
  const hint = findTargetProblem(url, settings)
  // A URL with @ may contain a password, so it is not repeated.
  if (hint !== undefined)
    violations.push({ fieldName: 'url', ...(!url.includes('@') && { invalidValue: url.slice(0, 128) }), hint })
  const known = attributesOf(kind)
  const wrong = attributes.find((name) => !known.includes(name))
  if (wrong !== undefined)
    violations.push({ fieldName: 'attributes', invalidValue: wrong, hint: `must be one of ${known.join(', ')}` })
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'not a webhook', violations })
}

const SECRET_BYTES = 32
/** Stands for a secret that does not open, because somebody altered it. A rotation replaces it. */
const NOT_OPENED = new Uint8Array(0)
const BATCH_ROWS = 1_000
const REPLAY_BATCHES_MAX = 10
