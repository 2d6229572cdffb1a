// DELETE /admin/activations/{id}/config/{key}: takes one item away (v4 §9.11).
import { Ok } from '../../../../http/types.ts'
import { deleteConfigItem } from '../../../../storage/config-items.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { requireActivation, viewOfActivation } from './activation.ts'
import { OfKey, refuseItem, targetOf } from './item.ts'

export const activationConfigRemove = auditedEndpoint({
  method: 'DELETE',
  path: '/admin/activations/:id/config/:key',
  operationId: 'removeActivationConfig',
  summary: 'Removes a configuration item of an activation',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  response: Ok,
  async handle({ params: { id, key }, tx, parts }) {
    const owner = await requireActivation({ ...parts, db: tx }, id)
    if (!(await deleteConfigItem(tx, owner, { scope: 'ACTIVATION', key }))) refuseItem(key)
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})
