// GET /admin/webhooks: all of them (cloud §10).
import { Type } from '@sinclair/typebox'
import { listWebhooks } from '../../../../storage/webhooks.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { showTo, toWebhook, Webhook } from './webhook.ts'

export const webhooksList = cloudEndpoint({
  method: 'GET',
  path: '/admin/webhooks',
  operationId: 'listWebhooks',
  summary: 'Lists webhooks',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ webhooks: Type.Array(Webhook) }),
  async handle({ parts, caller }) {
    const webhooks = (await listWebhooks(parts.db, null)).map((row) => toWebhook(parts, row))
    return { webhooks: webhooks.map((webhook) => showTo(caller, webhook)) }
  },
})
