// POST /admin/application: a new application (cloud §10).
import { Type } from '@sinclair/typebox'
import { createApplication, readMobileConfiguration } from '../../../../domain/application/application.ts'
import { ok } from '../../../../http/types.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier } from '../../fields.ts'
import { viewApplication } from '../applications/application.ts'
import { baseUrlOf } from '../base-url.ts'
import { ApplicationConfiguration } from './configuration.ts'

export const applicationCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/application',
  summary: 'Creates an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  body: Type.Object({ id: Identifier }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ body: { id }, parts, origin }) {
    await createApplication(parts, id)
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id)) })
  },
  audited: {
    target: ({ body: { id } }) => `application ${id}`,
    view: ({ body: { id }, parts }) => viewApplication(parts.db, id),
  },
})
