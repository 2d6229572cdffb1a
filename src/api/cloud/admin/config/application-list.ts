// GET /admin/applications/{id}/config: the configuration items of an application (v4 §9.11).
import { requireApplication } from '../../../../domain/application/application.ts'
import { listConfigItems } from '../../../../storage/config-items.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { Items, OfOwner } from './item.ts'

export const applicationConfigList = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id/config',
  operationId: 'listApplicationConfig',
  summary: 'Lists the configuration items of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfOwner,
  response: Items,
  async handle({ params: { id }, parts }) {
    await requireApplication(parts.db, id)
    return { config: await listConfigItems(parts.db, { applicationId: id, activationId: null }) }
  },
})
