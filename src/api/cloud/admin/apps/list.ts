// GET /admin/apps: applications with their names for people (utility §4).
import { Type } from '@sinclair/typebox'
import { listApplications } from '../../../../storage/applications.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { App, toApp } from './app.ts'

export const appsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps',
  operationId: 'listApps',
  summary: 'Lists applications with their names for people',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ applications: Type.Array(App) }),
  async handle({ parts }) {
    return { applications: (await listApplications(parts.db)).map(toApp) }
  },
})
