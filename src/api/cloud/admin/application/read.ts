// GET /admin/application: what a mobile app needs of its application (cloud §10).
import { Type } from '@sinclair/typebox'
import { readMobileConfiguration } from '../../../../domain/application/application.ts'
import { ok, withExample } from '../../../../http/types.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier } from '../../fields.ts'
import { baseUrlOf } from '../base-url.ts'
import { ApplicationConfiguration } from './configuration.ts'

export const applicationRead = cloudEndpoint({
  method: 'GET',
  path: '/admin/application',
  operationId: 'readApplicationConfiguration',
  summary: 'What a mobile app needs of its application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  query: Type.Object({ id: Identifier, version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ query: { id, version }, parts, origin }) {
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id, version)) })
  },
})
