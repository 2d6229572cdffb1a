// POST /admin/application: a new application (cloud §10).
import { Type } from '@sinclair/typebox'
import { createApplication, readMobileConfiguration } from '../../../../domain/application/application.ts'
import { ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'
import { viewApplication } from '../applications/application.ts'
import { baseUrlOf } from '../base-url.ts'
import { ApplicationConfiguration } from './configuration.ts'

export const applicationCreate = auditedEndpoint({
  method: 'POST',
  path: '/admin/application',
  operationId: 'createApplication',
  summary: 'Creates an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ id: Identifier }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ body: { id }, tx, parts, origin }) {
    await createApplication({ ...parts, db: tx }, id)
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration({ ...parts, db: tx }, id)) })
  },
  audited: {
    target: ({ body: { id } }) => `application ${id}`,
    view: ({ body: { id }, tx }) => viewApplication(tx, id),
  },
})
