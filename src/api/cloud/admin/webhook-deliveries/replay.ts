// POST /admin/webhooks/{id}/deliveries: sends deliveries again (cloud §9).
import { Type } from '@sinclair/typebox'
import { replayDeliveries } from '../../../../domain/webhook/webhook.ts'
import { PawlError } from '../../../../lib/errors.ts'
import { listWebhooks } from '../../../../storage/webhooks.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { OfWebhook } from '../webhooks/webhook.ts'

export const webhookDeliveriesReplay = auditedEndpoint({
  method: 'POST',
  path: '/admin/webhooks/:id/deliveries',
  operationId: 'replayWebhookDeliveries',
  summary: 'Sends deliveries again',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  /** One of the two: a delivery in any status, or all that were given up. */
  body: Type.Object({ deliveryId: Type.Optional(Identifier), status: Type.Optional(Type.Literal('DEAD')) }),
  response: Type.Object({ replayed: Type.Integer() }),
  async handle({ params: { id }, body: { deliveryId, status }, tx, parts }) {
    if ((deliveryId === undefined) === (status === undefined)) {
      const violations = [{ fieldName: 'body', hint: 'must have either deliveryId or status' }]
      throw new PawlError('REQUEST_INVALID', { detail: 'nothing to replay was named', violations })
    }
    return { replayed: await replayDeliveries({ ...parts, db: tx }, id, deliveryId) }
  },
  audited: {
    target: ({ params: { id }, body: { deliveryId } }) =>
      deliveryId ? `delivery ${deliveryId} of webhook ${id}` : `webhook ${id}`,
    view: async ({ params: { id }, tx }) => {
      const [webhook] = await listWebhooks(tx, id)
      return webhook && { waiting: webhook.waiting, dead: webhook.dead }
    },
  },
})
