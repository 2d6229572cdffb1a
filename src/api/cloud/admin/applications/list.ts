// GET /admin/applications: all of them (cloud §10).
import { Type } from '@sinclair/typebox'
import { listApplications } from '../../../../storage/applications.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Application, toApplication } from './application.ts'

export const applicationsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications',
  operationId: 'listApplications',
  summary: 'Lists applications',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ applications: Type.Array(Application) }),
  async handle({ parts }) {
    return { applications: (await listApplications(parts.db)).map(toApplication) }
  },
})
