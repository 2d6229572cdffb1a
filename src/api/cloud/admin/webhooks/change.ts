// PUT /admin/webhooks/{id}: replaces what a webhook is set to (cloud §10).
import { Type } from '@sinclair/typebox'
import { changeWebhook } from '../../../../domain/webhook/webhook.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedWebhook, Basic, webhookMembers, OfWebhook, readWebhookDetail, Webhook } from './webhook.ts'

export const webhookChange = auditedEndpoint({
  method: 'PUT',
  path: '/admin/webhooks/:id',
  operationId: 'changeWebhook',
  summary: 'Replaces a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  /** Without `basic` the credentials stay, which nobody can read back, as long as the server is the same; null removes them. */
  body: Type.Object({ ...webhookMembers, basic: Type.Optional(Type.Union([Basic, Type.Null()])) }),
  response: Webhook,
  async handle({ params: { id }, body: { name, url, attributes = [], basic, isEnabled = true }, tx, parts }) {
    await changeWebhook({ ...parts, db: tx }, id, { name, url, attributes, basic, isEnabled })
    return readWebhookDetail({ ...parts, db: tx }, id)
  },
  audited: auditedWebhook,
})
