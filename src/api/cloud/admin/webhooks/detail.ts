// GET /admin/webhooks/{id}: one webhook, and how it is doing (cloud §10).
import { cloudEndpoint } from '../../endpoint.ts'
import { OfWebhook, readWebhookDetail, showTo, Webhook } from './webhook.ts'

export const webhookDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/webhooks/:id',
  operationId: 'readWebhook',
  summary: 'Reads a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfWebhook,
  response: Webhook,
  invalidAs: 'ADMINISTRATION_REFUSED',
  handle: async ({ params: { id }, parts, caller }) => showTo(caller, await readWebhookDetail(parts, id)),
})
