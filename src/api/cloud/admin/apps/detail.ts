// GET /admin/apps/{name}: pinned domains and certificates (utility §4).
import { Type } from '@sinclair/typebox'
import { cloudEndpoint } from '../../endpoint.ts'
import { Identifier } from '../../fields.ts'
import { AppDetail, readAppDetail } from './app.ts'

export const appDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/apps/:name',
  operationId: 'readApp',
  summary: 'Pinned domains and certificates of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: Type.Object({ name: Identifier }),
  response: AppDetail,
  handle: ({ params, parts }) => readAppDetail(parts, params.name),
})
