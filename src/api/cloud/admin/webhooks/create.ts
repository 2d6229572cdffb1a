// POST /admin/webhooks: a new receiver of the changes of an application (cloud §9, §10).
import { Type } from '@sinclair/typebox'
import { createWebhook } from '../../../../domain/webhook/webhook.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { Basic, Kind, webhookMembers, readWebhookDetail, Secret, viewWebhook, Webhook } from './webhook.ts'

export const webhookCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/webhooks',
  operationId: 'createWebhook',
  summary: 'Creates a webhook',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ application: Identifier, kind: Kind, ...webhookMembers, basic: Type.Optional(Basic) }),
  response: Type.Composite([Webhook, Secret]),
  async handle({ body: { application, kind, name, url, attributes = [], basic, isEnabled = true }, tx, parts }) {
    const webhook = { applicationId: application, kind, name, url, attributes, basic, isEnabled }
    const { webhookId, secret } = await createWebhook({ ...parts, db: tx }, webhook)
    return { ...(await readWebhookDetail({ ...parts, db: tx }, webhookId)), secret }
  },
  audited: {
    target: (_call, { id }) => `webhook ${id}`,
    view: async ({ tx, parts }, answer) => answer && viewWebhook({ ...parts, db: tx }, answer.id),
  },
})
