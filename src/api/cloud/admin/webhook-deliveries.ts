// /admin/webhooks/{id}/deliveries: shows the sent, waiting and abandoned messages of a webhook, and sends them again (cloud §9).
import { type Static, Type } from '@sinclair/typebox'
import { composeMessageBody, parseSnapshot } from '../../../domain/webhook/attempt.ts'
import { readWebhook, replayDeliveries } from '../../../domain/webhook/webhook.ts'
import { named, OneOf } from '../../../http/types.ts'
import { notFound, requestRefused } from '../../../lib/errors.ts'
import { JsonFault } from '../../../lib/json.ts'
import type { DeliveryStatus } from '../../../storage/database/schema.ts'
import { type DeliveryRow, findDelivery, listDeliveries } from '../../../storage/webhook/deliveries.ts'
import { listWebhooks, type WebhookRow } from '../../../storage/webhook/webhooks.ts'
import { auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead, cloudEndpoint } from '../endpoint.ts'
import { cutPage, Identifier, MadeId, NextCursor, OfId, PageLimit, Time } from '../fields.ts'
import type { CloudParts } from '../parts.ts'

const DeliveryStatusName = OneOf<DeliveryStatus>(['WAITING', 'DELIVERED', 'DEAD'])

const Delivery = named(
  'WebhookDelivery',
  Type.Object({
    id: Type.String({ description: '`webhook-id` of all its messages' }),
    objectId: Type.String({ description: 'id of the operation or activation' }),
    objectStatus: Type.String({
      description: 'the status that the message reports; `UNKNOWN` where somebody altered the message in the database',
    }),
    status: DeliveryStatusName,
    attempts: Type.Integer({ description: 'attempts until now' }),
    isBehindEarlier: Type.Optional(
      Type.Boolean({ description: 'it waits for the end of an earlier one about the same operation or activation' }),
    ),
    nextAttemptAt: Type.Optional(
      Type.Integer({ description: 'milliseconds since 1970-01-01 UTC, of one that waits; 0 for at once' }),
    ),
    lastError: Type.Optional(Type.String()),
    createdAt: Time,
    finishedAt: Type.Optional(Time),
  }),
)
export type Delivery = Static<typeof Delivery>

const webhookDeliveriesList = adminRead({
  route: 'GET /admin/webhooks/:id/deliveries',
  operationId: 'listWebhookDeliveries',
  summary: 'Lists deliveries of a webhook',
  description: 'The newest first. `objectId` leaves those about one operation or activation.',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  query: Type.Object({
    status: Type.Optional(DeliveryStatusName),
    objectId: Type.Optional(MadeId),
    limit: PageLimit(1_000, 100),
    before: Type.Optional(
      Type.String({ pattern: '^[0-9]{1,18}$', description: 'must be the next of another page', examples: ['100'] }),
    ),
  }),
  response: Type.Object({ deliveries: Type.Array(Delivery), next: NextCursor }),
  async handle({ params: { id }, query: { status = null, objectId = null, limit, before = null }, parts }) {
    const webhook = await readWebhook(parts, id)
    const rows = await listDeliveries(parts.db, id, { status, objectId, before, limit: limit + 1 })
    const { page, last } = cutPage(rows, limit)
    return { deliveries: page.map((row) => toDelivery(parts, webhook, row)), ...(last && { next: last.sequence }) }
  },
})

const webhookDeliveryRead = cloudEndpoint({
  route: 'GET /admin/webhooks/:id/deliveries/:deliveryId',
  operationId: 'readWebhookDelivery',
  summary: 'A delivery of a webhook, with the body of its message',
  errors: ['ADMINISTRATION_REFUSED'],
  // The body has attributes of the operation. The role read-only may not see them.
  roles: ['admin'],
  params: Type.Object({ id: Identifier, deliveryId: MadeId }),
  response: Type.Composite([
    Delivery,
    Type.Object({
      body: Type.String({
        description:
          'as an attempt sends it now; earlier ones had the attributes of their time. Empty where somebody altered the message in the database ' +
          'so that none can be made',
      }),
    }),
  ]),
  async handle({ params: { id, deliveryId }, parts }) {
    const webhook = await readWebhook(parts, id)
    const row = await findDelivery(parts.db, id, deliveryId)
    if (row === undefined) throw notFound('delivery', `${deliveryId} of webhook ${id}`)
    const compose = async () =>
      composeMessageBody(parts, webhook, { objectId: row.objectId, snapshot: parseSnapshot(row.payload) })
    return { ...toDelivery(parts, webhook, row), body: await compose().catch(emptyIfAltered) }
  },
})

function emptyIfAltered(error: unknown): string {
  if (error instanceof JsonFault || error instanceof SyntaxError) return ''
  throw error
}

function readObjectStatus(payload: string): string {
  try {
    return String(parseSnapshot(payload)['status'] ?? 'UNKNOWN')
  } catch (error) {
    if (error instanceof JsonFault) return 'UNKNOWN'
    throw error
  }
}

/** A delivery in an answer. While the webhook pauses, no attempt is made, so the next one is not before the end of the pause. */
function toDelivery({ platform }: Pick<CloudParts, 'platform'>, { pausedUntil }: WebhookRow, row: DeliveryRow) {
  const pauseEnd = pausedUntil !== null && pausedUntil.getTime() > platform.now() ? pausedUntil.getTime() : 0
  return {
    id: row.deliveryId,
    objectId: row.objectId,
    objectStatus: readObjectStatus(row.payload),
    status: row.status,
    attempts: row.attempts,
    ...(row.isBehind && { isBehindEarlier: true }),
    ...(row.status === 'WAITING' && { nextAttemptAt: Math.max(row.nextAttemptAt.getTime(), pauseEnd) }),
    ...(row.lastError !== null && { lastError: row.lastError }),
    createdAt: row.createdAt.getTime(),
    ...(row.finishedAt !== null && { finishedAt: row.finishedAt.getTime() }),
  }
}

const webhookDeliveriesReplay = auditedEndpoint({
  route: 'POST /admin/webhooks/:id/deliveries',
  operationId: 'replayWebhookDeliveries',
  summary: 'Sends deliveries again',
  description: 'Either the one of `deliveryId`, whatever its status, or with `status` up to 10,000 that were given up.',
  params: OfId,
  body: Type.Object({ deliveryId: Type.Optional(MadeId), status: Type.Optional(Type.Literal('DEAD')) }),
  response: Type.Object({ replayed: Type.Integer({ description: 'deliveries that are sent again' }) }),
  async handle({ params: { id }, body: { deliveryId, status }, parts }) {
    if ((deliveryId === undefined) === (status === undefined))
      throw requestRefused('body', 'must have either deliveryId or status')
    return { replayed: await replayDeliveries(parts, id, deliveryId) }
  },
  audited: {
    target: ({ params: { id }, body: { deliveryId } }) =>
      deliveryId ? `delivery ${deliveryId} of webhook ${id}` : `webhook ${id}`,
    view: async ({ params: { id }, parts }) => {
      const [webhook] = await listWebhooks(parts.db, id)
      return webhook && { waiting: webhook.waiting, dead: webhook.dead }
    },
  },
})

export const deliveryEndpoints = [webhookDeliveriesList, webhookDeliveryRead, webhookDeliveriesReplay]
