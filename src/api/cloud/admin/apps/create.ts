// POST /admin/apps: an application and its pinning key (utility §4).
import { Type } from '@sinclair/typebox'
import { createApplication } from '../../../../domain/application/application.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { AppDetail, readAppDetail } from './app.ts'

export const appCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/apps',
  operationId: 'createApp',
  summary: 'Creates an application and its pinning key',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ name: Identifier, displayName: Type.Optional(Identifier) }),
  response: AppDetail,
  async handle({ body: { name, displayName }, tx, parts }) {
    await createApplication({ ...parts, db: tx }, name, displayName)
    return readAppDetail({ ...parts, db: tx }, name)
  },
  audited: {
    target: ({ body: { name } }) => `application ${name}`,
    view: async (_call, answer) => answer && { name: answer.name, displayName: answer.displayName },
  },
})
