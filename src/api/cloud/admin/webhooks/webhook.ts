// What the endpoints of webhooks share: the schemas, and a webhook as administrators and the audit log see it (cloud §9, §10).
import { Type } from '@sinclair/typebox'
import type { Caller } from '../../../../domain/credential/credential.ts'
import { openBasic, type WebhookParts } from '../../../../domain/webhook/webhook.ts'
import { notFound } from '../../../../lib/errors.ts'
import type { WebhookKind } from '../../../../storage/schema.ts'
import { findWebhook, listWebhooks, type WebhookFigures, type WebhookRow } from '../../../../storage/webhooks.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier, Username } from '../../fields.ts'
import { named } from '../../../../http/types.ts'

export const Kind = Type.Unsafe<WebhookKind>(Type.String({ enum: ['OPERATION', 'ACTIVATION'] }))

/** Of the path. */
export const OfWebhook = Type.Object({ id: Identifier })

/** How changes of a webhook are recorded. */
export const auditedWebhook: Audited<unknown, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id } }) => `webhook ${id}`,
  view: ({ params: { id }, tx, parts }) => viewWebhook({ ...parts, db: tx }, id),
}

/** With which the receiver is called. */
export const Basic = Type.Object({
  username: Username,
  password: Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$',
    description: 'must be 1 to 255 characters without control characters',
  }),
})

/** What an administrator sets, beside the credentials. */
export const webhookMembers = {
  name: Identifier,
  url: Type.String({ pattern: '^[^]{1,1024}$', description: 'must be 1 to 1024 characters' }),
  attributes: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { uniqueItems: true })),
  isEnabled: Type.Optional(Type.Boolean()),
}

/** The answer. */
export const Webhook = named(
  'Webhook',
  Type.Object({
    id: Type.String(),
    application: Type.String(),
    name: Type.String(),
    kind: Kind,
    url: Type.String(),
    attributes: Type.Array(Type.String()),
    basicUsername: Type.Optional(Type.String()),
    isEnabled: Type.Boolean(),
    /** Why pawl disabled it. */
    disabledReason: Type.Optional(Type.String()),
    /** Until then messages are also signed with the previous secret. */
    previousSecretExpiresAt: Type.Optional(Type.Integer()),
    createdAt: Type.Integer(),
    /** Deliveries that wait for their first or next attempt. */
    waiting: Type.Integer(),
    /** Since the webhook was created. */
    delivered: Type.Integer(),
    dead: Type.Integer(),
    /** Attempts without a success between them. */
    failuresInRow: Type.Integer(),
    /** Age of the oldest waiting delivery. */
    lagSeconds: Type.Integer(),
  }),
)

/** `whsec_` and Base64 of 32 bytes; shown this once. */
export const Secret = Type.Object({ secret: Type.String() })

/** A webhook for the audit log: how it is set up, not how it is doing. The query of a URL may hold a secret of the receiver. */
export async function viewWebhook(parts: WebhookParts, id: string) {
  const row = await findWebhook(parts.db, id)
  if (row === undefined) return undefined
  const { webhookId, applicationId, name, kind, url, attributes, isEnabled, previousSecretExpiresAt } = row
  const basicUsername = openBasic(parts, row)?.split(':')[0]
  return {
    id: webhookId,
    application: applicationId,
    name,
    kind,
    url: hideQuery(url),
    basicUsername,
    isEnabled,
    attributes: [...attributes],
    previousSecretExpiresAt,
  }
}

/** A caller who may only read is not shown a secret of the receiver either. */
export const showTo = <W extends { url: string }>({ role }: Caller, webhook: W): W =>
  role === 'read-only' ? { ...webhook, url: hideQuery(webhook.url) } : webhook

function hideQuery(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** Throws ADMINISTRATION_REFUSED when there is none. */
export async function readWebhookDetail(parts: WebhookParts, id: string) {
  const [row] = await listWebhooks(parts.db, id)
  if (row === undefined) throw notFound(`webhook ${id}`)
  return toWebhook(parts, row)
}

export function toWebhook(parts: WebhookParts, row: WebhookRow & WebhookFigures) {
  const now = parts.platform.now()
  const basicUsername = openBasic(parts, row)?.split(':')[0]
  const previousSecretExpiresAt = row.previousSecretExpiresAt?.getTime() ?? 0
  return {
    id: row.webhookId,
    application: row.applicationId,
    name: row.name,
    kind: row.kind,
    url: row.url,
    attributes: [...row.attributes],
    ...(basicUsername !== undefined && { basicUsername }),
    isEnabled: row.isEnabled,
    ...(row.disabledReason !== null && { disabledReason: row.disabledReason }),
    ...(previousSecretExpiresAt > now && { previousSecretExpiresAt }),
    createdAt: row.createdAt.getTime(),
    waiting: row.waiting,
    delivered: row.delivered,
    dead: row.dead,
    failuresInRow: row.failuresInRow,
    lagSeconds: row.waitingSince === null ? 0 : Math.max(0, Math.round((now - row.waitingSince.getTime()) / 1000)),
  }
}
