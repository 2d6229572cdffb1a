// PUT /admin/webhooks/{id}: replaces what a webhook is set to (cloud §10).
import { Type } from '@sinclair/typebox'
import { changeWebhook } from '../../../../domain/webhook/webhook.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { auditedWebhook, Basic, webhookMembers, OfWebhook, readWebhookDetail, Webhook } from './webhook.ts'

export const webhookChange = cloudEndpoint({
  method: 'PUT',
  path: '/admin/webhooks/:id',
  summary: 'Replaces a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  /** Without `basic` the credentials stay, which nobody can read back, as long as the server is the same; null removes them. */
  body: Type.Object({ ...webhookMembers, basic: Type.Optional(Type.Union([Basic, Type.Null()])) }),
  response: Webhook,
  async handle({ params: { id }, body: { name, url, attributes = [], basic, isEnabled = true }, parts }) {
    await changeWebhook(parts, id, { name, url, attributes, basic, isEnabled })
    return readWebhookDetail(parts, id)
  },
  audited: auditedWebhook,
})
