// /admin/webhooks: manages receivers of the changes of an application (cloud §9, §10).
import { type Static, Type } from '@sinclair/typebox'
import type { Caller } from '../../../domain/credential/credential.ts'
import { tryWebhook } from '../../../domain/webhook/attempt.ts'
import { openBasic } from '../../../domain/webhook/basic.ts'
import {
  changeWebhook,
  createWebhook,
  removeDeliveries,
  removeWebhook,
  rotateWebhookSecret,
} from '../../../domain/webhook/webhook.ts'
import { ifOpens, type KeyParts } from '../../../domain/secrets/secrets.ts'
import { named, OneOf, OptionalOrNull, withExample } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import type { WebhookKind } from '../../../storage/database/schema.ts'
import { findWebhook, listWebhooks, type WebhookFigures, type WebhookRow } from '../../../storage/webhook/webhooks.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, KeepPreviousSeconds, OfId, Time, Username } from '../fields.ts'

const Kind = OneOf<WebhookKind>(['OPERATION', 'ACTIVATION'])

const auditedWebhook: Audited<{ readonly id: string }> = {
  target: ({ params: { id } }) => `webhook ${id}`,
  view: ({ params: { id }, parts }) => viewWebhook(parts, id),
}

/** The credentials with which the receiver is called. */
const Basic = Type.Object({
  username: Username,
  password: Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F]{1,255}$',
    description: 'must be 1 to 255 characters without control characters',
  }),
})

/** The members of a webhook, without its credentials. */
const webhookMembers = {
  name: withExample(Identifier, 'core banking'),
  url: Type.String({ pattern: '^[^]{1,1024}$', description: 'must be 1 to 1024 characters' }),
  attributes: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      uniqueItems: true,
      description: 'what messages say beside type, id and event; none without it. docs/WEBHOOKS.md lists those of each kind',
      examples: [['userId', 'status']],
    }),
  ),
  isEnabled: Type.Optional(Type.Boolean({ description: 'true without it' })),
}

const Webhook = named(
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
    disabledReason: Type.Optional(Type.String({ description: 'why pawl disabled it' })),
    previousSecretExpiresAt: Type.Optional(
      Type.Integer({ description: 'milliseconds since 1970-01-01 UTC: until then messages are signed with both secrets' }),
    ),
    createdAt: Time,
    waiting: Type.Integer({ description: 'deliveries that wait for their first or next attempt' }),
    delivered: Type.Integer({ description: 'deliveries that the receiver took, since the webhook was created' }),
    dead: Type.Integer({ description: 'deliveries that were given up' }),
    failuresInRow: Type.Integer({ description: 'attempts without a success between them' }),
    lagSeconds: Type.Integer({ description: 'age of the oldest delivery that waits' }),
  }),
)
export type Webhook = Static<typeof Webhook>

const Secret = Type.Object({
  secret: Type.String({ description: 'shown this once; `whsec_` and Base64 of the 32 bytes that sign messages' }),
})

/**
 * The settings of a webhook for the audit log, without its figures. The query of the URL is left out, because it may contain a secret of the
 * receiver.
 */
async function viewWebhook(parts: KeyParts, id: string) {
  const row = await findWebhook(parts.db, id)
  if (row === undefined) return undefined
  const { webhookId, applicationId, name, kind, url, attributes, isEnabled, previousSecretExpiresAt } = row
  const basicUsername = usernameOf(parts, row)
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

/** The user name of HTTP Basic. Undefined if there is none, and when the record does not open, until an administrator sets it again. */
const usernameOf = (parts: KeyParts, row: WebhookRow): string | undefined =>
  ifOpens(() => openBasic(parts.recordKeys, row))?.split(':')[0]

/** A webhook as the caller may see it. The role read-only may not see the query, which may contain a secret of the receiver. */
const showTo = <W extends { url: string }>({ role }: Caller, webhook: W): W =>
  role === 'read-only' ? { ...webhook, url: hideQuery(webhook.url) } : webhook

/** A URL without its query. Empty for a text that is no URL, which only a direct write to the database can cause. */
const hideQuery = (url: string): string => (URL.canParse(url) ? `${new URL(url).origin}${new URL(url).pathname}` : '')

/** A webhook in an answer. Throws ADMINISTRATION_REFUSED when there is none. */
async function readWebhookDetail(parts: KeyParts, id: string) {
  const [row] = await listWebhooks(parts.db, id)
  if (row === undefined) throw notFound('webhook', id)
  return toWebhook(parts, row)
}

function toWebhook(parts: KeyParts, row: WebhookRow & WebhookFigures) {
  const now = parts.platform.now()
  const basicUsername = usernameOf(parts, row)
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

const webhooksList = adminRead({
  route: 'GET /admin/webhooks',
  operationId: 'listWebhooks',
  summary: 'Lists webhooks',
  response: Type.Object({ webhooks: Type.Array(Webhook) }),
  async handle({ parts, caller }) {
    const webhooks = (await listWebhooks(parts.db, null)).map((row) => toWebhook(parts, row))
    return { webhooks: webhooks.map((webhook) => showTo(caller, webhook)) }
  },
})

const webhookDetail = adminRead({
  route: 'GET /admin/webhooks/:id',
  operationId: 'readWebhook',
  summary: 'Reads a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  response: Webhook,
  handle: async ({ params: { id }, parts, caller }) => showTo(caller, await readWebhookDetail(parts, id)),
})

const webhookCreate = auditedEndpoint({
  route: 'POST /admin/webhooks',
  operationId: 'createWebhook',
  summary: 'Creates a webhook',
  body: Type.Object({ application: Identifier, kind: Kind, ...webhookMembers, basic: Type.Optional(Basic) }),
  response: Type.Composite([Webhook, Secret]),
  async handle({ body: { application, kind, name, url, attributes = [], basic, isEnabled = true }, parts }) {
    const webhook = { applicationId: application, kind, name, url, attributes, basic, isEnabled }
    const { webhookId, secret } = await createWebhook(parts, webhook)
    return { ...(await readWebhookDetail(parts, webhookId)), secret }
  },
  audited: {
    target: (_call, { id }) => `webhook ${id}`,
    view: async ({ parts }, answer) => answer && viewWebhook(parts, answer.id),
  },
})

const webhookChange = auditedEndpoint({
  route: 'PUT /admin/webhooks/:id',
  operationId: 'changeWebhook',
  summary: 'Replaces a webhook',
  description: 'Without `basic` the credentials stay as long as the server is the same; null removes them.',
  params: OfId,
  body: Type.Object({ ...webhookMembers, basic: OptionalOrNull(Basic) }),
  response: Webhook,
  async handle({ params: { id }, body: { name, url, attributes = [], basic, isEnabled = true }, parts }) {
    await changeWebhook(parts, id, { name, url, attributes, basic, isEnabled })
    return readWebhookDetail(parts, id)
  },
  audited: auditedWebhook,
})

const webhookRemove = auditedEndpoint({
  route: 'DELETE /admin/webhooks/:id',
  operationId: 'removeWebhook',
  summary: 'Removes a webhook',
  params: OfId,
  async handle({ params: { id }, parts, afterCommit }) {
    await removeWebhook(parts, id)
    afterCommit((db) => removeDeliveries({ db }, id))
  },
  audited: auditedWebhook,
})

const webhookSecret = auditedEndpoint({
  route: 'POST /admin/webhooks/:id/secret',
  operationId: 'rotateWebhookSecret',
  summary: 'Gives a webhook a new secret',
  params: OfId,
  body: Type.Object({ keepPreviousSeconds: KeepPreviousSeconds }),
  response: Secret,
  async handle({ params: { id }, body: { keepPreviousSeconds = 0 }, parts }) {
    return { secret: await rotateWebhookSecret(parts, id, keepPreviousSeconds) }
  },
  audited: auditedWebhook,
})

const WebhookTest = named(
  'WebhookTest',
  Type.Object({
    id: Type.String({ description: '`webhook-id` of the message' }),
    isDelivered: Type.Boolean({ description: 'whether the receiver answered with 2xx' }),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer; absent when none came' })),
    error: Type.Optional(Type.String({ description: 'why it was not delivered' })),
    durationMs: Type.Integer({ description: 'from the first look at the name to the answer' }),
  }),
)
export type WebhookTest = Static<typeof WebhookTest>

const webhookTest = auditedEndpoint({
  route: 'POST /admin/webhooks/:id/test',
  operationId: 'testWebhook',
  summary: 'Sends a test message to a webhook',
  description:
    'The message has the event `test` and examples as attributes. It is signed and sent like every other, once, also to a webhook that is disabled. The answer comes after the one of the receiver, or after ten seconds.',
  params: OfId,
  body: Type.Object({}),
  response: WebhookTest,
  prepare: ({ params: { id }, parts }) => tryWebhook(parts, id),
  handle: async (_call, trial) => trial,
  audited: { ...auditedWebhook, view: async (_call, trial) => trial },
})

export const webhookEndpoints = [
  webhooksList,
  webhookDetail,
  webhookCreate,
  webhookChange,
  webhookRemove,
  webhookSecret,
  webhookTest,
]
