// DELETE /admin/webhooks/{id}: the webhook and what it was to be sent (cloud §10).
import { removeDeliveries, removeWebhook } from '../../../../domain/webhook/webhook.ts'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedWebhook, OfWebhook } from './webhook.ts'

export const webhookRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/webhooks/:id',
  operationId: 'removeWebhook',
  summary: 'Removes a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  response: Ok,
  async handle({ params: { id }, tx, parts, afterCommit }) {
    await removeWebhook({ ...parts, db: tx }, id)
    afterCommit((db) => removeDeliveries({ db }, id))
    return { status: 'OK' as const }
  },
  audited: auditedWebhook,
})
