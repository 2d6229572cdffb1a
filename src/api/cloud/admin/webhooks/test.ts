// POST /admin/webhooks/{id}/test: sends a message that tells of nothing, and says what the receiver answered (cloud §9, §10).
import { Type } from '@sinclair/typebox'
import { tryWebhook } from '../../../../domain/webhook/trial.ts'
import { named } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { auditedWebhook, OfWebhook } from './webhook.ts'

const WebhookTest = named(
  'WebhookTest',
  Type.Object({
    /** The webhook-id of the message. */
    id: Type.String(),
    /** The receiver answered with 2xx. */
    isDelivered: Type.Boolean(),
    /** What the receiver answered; absent when it did not. */
    status: Type.Optional(Type.Integer()),
    /** Why it was not delivered. */
    error: Type.Optional(Type.String()),
    /** From the first look at the name to the answer. */
    durationMs: Type.Integer(),
  }),
)

export const webhookTest = auditedEndpoint({
  method: 'POST',
  path: '/admin/webhooks/:id/test',
  operationId: 'testWebhook',
  summary: 'Sends a test message to a webhook',
  description:
    'The message has the event `test` and examples as attributes. It is signed and sent like every other, once, also to a webhook that is disabled. The answer comes after the one of the receiver, or after ten seconds.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfWebhook,
  body: Type.Object({}),
  response: WebhookTest,
  prepare: ({ params: { id }, parts }) => tryWebhook(parts, id),
  handle: async (_call, trial) => trial,
  audited: { ...auditedWebhook, view: async (_call, trial) => trial },
})
