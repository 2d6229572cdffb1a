// /admin/webhooks: receivers of an application's changes, beyond the contract (cloud §9, §10).
import { Type } from '@sinclair/typebox'
import {
  changeWebhook,
  createWebhook,
  openBasic,
  removeDeliveries,
  removeWebhook,
  rotateWebhookSecret,
  type WebhookParts,
} from '../../../domain/webhook/webhook.ts'
import type { Caller } from '../../../domain/credential/credential.ts'
import { Ok } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import type { WebhookKind } from '../../../storage/schema.ts'
import { findWebhook, listWebhooks, type WebhookFigures, type WebhookRow } from '../../../storage/webhooks.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier, Username } from '../fields.ts'

const Kind = Type.Unsafe<WebhookKind>(Type.String({ enum: ['OPERATION', 'ACTIVATION'] }))
const OfWebhook = Type.Object({ id: Identifier })

const audited: Audited<unknown, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id } }) => `webhook ${id}`,
  view: ({ params: { id }, parts }) => viewWebhook(parts, id),
}

const Basic = Type.Object({
  username: Username,
  password: Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$',
    description: 'must be 1 to 255 characters without control characters',
  }),
})
const target = {
  name: Identifier,
  url: Type.String({ pattern: '^[^]{1,1024}$', description: 'must be 1 to 1024 characters' }),
  attributes: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { uniqueItems: true })),
  isEnabled: Type.Optional(Type.Boolean()),
}

const Webhook = Type.Object({
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
})
/** `whsec_` and Base64 of 32 bytes; shown this once. */
const Secret = Type.Object({ secret: Type.String() })

export const webhooksList = cloudEndpoint({
  method: 'GET',
  path: '/admin/webhooks',
  summary: 'Lists webhooks',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ webhooks: Type.Array(Webhook) }),
  async handle({ parts, caller }) {
    const webhooks = (await listWebhooks(parts.db, null)).map((row) => toWebhook(parts, row))
    return { webhooks: webhooks.map((webhook) => showTo(caller, webhook)) }
  },
})

export const webhookDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/webhooks/:id',
  summary: 'Reads a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfWebhook,
  response: Webhook,
  invalidAs: 'ADMINISTRATION_REFUSED',
  handle: async ({ params: { id }, parts, caller }) => showTo(caller, await readDetail(parts, id)),
})

export const webhookCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/webhooks',
  summary: 'Creates a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ application: Identifier, kind: Kind, ...target, basic: Type.Optional(Basic) }),
  response: Type.Composite([Webhook, Secret]),
  async handle({ body: { application, kind, name, url, attributes = [], basic, isEnabled = true }, parts }) {
    const webhook = { applicationId: application, kind, name, url, attributes, basic, isEnabled }
    const { webhookId, secret } = await createWebhook(parts, webhook)
    return { ...(await readDetail(parts, webhookId)), secret }
  },
  audited: {
    target: (_call, { id }) => `webhook ${id}`,
    view: async ({ parts }, answer) => answer && viewWebhook(parts, answer.id),
  },
})

export const webhookChange = cloudEndpoint({
  method: 'PUT',
  path: '/admin/webhooks/:id',
  summary: 'Replaces a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  /** Without `basic` the credentials stay, which nobody can read back, as long as the server is the same; null removes them. */
  body: Type.Object({ ...target, basic: Type.Optional(Type.Union([Basic, Type.Null()])) }),
  response: Webhook,
  async handle({ params: { id }, body: { name, url, attributes = [], basic, isEnabled = true }, parts }) {
    await changeWebhook(parts, id, { name, url, attributes, basic, isEnabled })
    return readDetail(parts, id)
  },
  audited,
})

export const webhookRemove = cloudEndpoint({
  method: 'DELETE',
  path: '/admin/webhooks/:id',
  summary: 'Removes a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  response: Ok,
  async handle({ params: { id }, parts, afterCommit }) {
    await removeWebhook(parts, id)
    afterCommit((db) => removeDeliveries({ db }, id))
    return { status: 'OK' as const }
  },
  audited,
})

export const webhookSecret = cloudEndpoint({
  method: 'POST',
  path: '/admin/webhooks/:id/secret',
  summary: 'Gives a webhook a new secret',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  body: Type.Object({
    /** How long messages are also signed with the previous secret. */
    keepPreviousSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  }),
  response: Secret,
  async handle({ params: { id }, body: { keepPreviousSeconds = 0 }, parts }) {
    return { secret: await rotateWebhookSecret(parts, id, keepPreviousSeconds) }
  },
  audited,
})

/** A webhook for the audit log: how it is set up, not how it is doing. The query of a URL may hold a secret of the receiver. */
async function viewWebhook(parts: WebhookParts, id: string) {
  const row = await findWebhook(parts.db, id)
  if (row === undefined) return undefined
  const { webhookId, applicationId, name, kind, url, attributes, isEnabled, previousSecretExpiresAt } = row
  const basicUsername = openBasic(parts, row)?.split(':')[0]
  return {
    id: webhookId,
    application: applicationId,
    name,
    kind,
    url: withoutQuery(url),
    basicUsername,
    isEnabled,
    attributes: attributes.split(',').filter(Boolean),
    previousSecretExpiresAt,
  }
}

/** Who may only read is not shown a secret of the receiver either. */
const showTo = <W extends { url: string }>({ role }: Caller, webhook: W): W =>
  role === 'read-only' ? { ...webhook, url: withoutQuery(webhook.url) } : webhook

function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

async function readDetail(parts: WebhookParts, id: string) {
  const [row] = await listWebhooks(parts.db, id)
  if (row === undefined) throw notFound(`webhook ${id}`)
  return toWebhook(parts, row)
}

function toWebhook(parts: WebhookParts, row: WebhookRow & WebhookFigures) {
  const now = parts.platform.now()
  const basicUsername = openBasic(parts, row)?.split(':')[0]
  const previousSecretExpiresAt = row.previousSecretExpiresAt?.getTime() ?? 0
  return {
    id: row.webhookId,
    application: row.applicationId,
    name: row.name,
    kind: row.kind,
    url: row.url,
    attributes: row.attributes.split(',').filter(Boolean),
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
