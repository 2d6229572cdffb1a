// GET /admin/activations/{id}/config: the configuration items of an activation (v4 §9.11).
import { listConfigItems } from '../../../../storage/config-items.ts'
import { cloudEndpoint } from '../../endpoint.ts'
import { requireActivation } from './activation.ts'
import { Items, OfOwner } from './item.ts'

export const activationConfigList = cloudEndpoint({
  method: 'GET',
  path: '/admin/activations/:id/config',
  operationId: 'listActivationConfig',
  summary: 'Lists the configuration items of an activation',
  description: 'Its own, without those of its application.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfOwner,
  response: Items,
  handle: async ({ params: { id }, parts }) => ({
    config: await listConfigItems(parts.db, await requireActivation(parts, id)),
  }),
})
