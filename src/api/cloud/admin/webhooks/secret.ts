// POST /admin/webhooks/{id}/secret: a new secret for the signatures of a webhook (cloud §9, §10).
import { Type } from '@sinclair/typebox'
import { rotateWebhookSecret } from '../../../../domain/webhook/webhook.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedWebhook, OfWebhook, Secret } from './webhook.ts'

export const webhookSecret = auditedEndpoint({
  method: 'POST',
  path: '/admin/webhooks/:id/secret',
  operationId: 'rotateWebhookSecret',
  summary: 'Gives a webhook a new secret',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  body: Type.Object({
    /** How long messages are also signed with the previous secret. */
    keepPreviousSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_592_000 })),
  }),
  response: Secret,
  async handle({ params: { id }, body: { keepPreviousSeconds = 0 }, tx, parts }) {
    return { secret: await rotateWebhookSecret({ ...parts, db: tx }, id, keepPreviousSeconds) }
  },
  audited: auditedWebhook,
})
