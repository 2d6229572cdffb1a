// DELETE /admin/applications/{id}/config/{key}: takes one item away (v4 §9.11).
import { Ok } from '../../../../http/types.ts'
import { deleteConfigItem } from '../../../../storage/config-items.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { OfScope, viewOfApplication } from './application.ts'
import { OfKey, refuseItem, targetOf } from './item.ts'

export const applicationConfigRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/applications/:id/config/:key',
  operationId: 'removeApplicationConfig',
  summary: 'Removes a configuration item of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  query: OfScope,
  response: Ok,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, tx }) {
    if (!(await deleteConfigItem(tx, { applicationId: id, activationId: null }, { scope, key }))) refuseItem(key)
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})
