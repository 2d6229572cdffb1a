// PUT /admin/activations/{id}/config/{key}: stores one item (v4 §9.11).
import { writeConfigItem } from '../../../../domain/application/config-items.ts'
import { Ok } from '../../../../http/types.ts'
import { PawlError } from '../../../../lib/errors.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { requireActivation, viewOfActivation } from './activation.ts'
import { NewValue, OfKey, targetOf } from './item.ts'

export const activationConfigStore = auditedEndpoint({
  method: 'PUT',
  path: '/admin/activations/:id/config/:key',
  operationId: 'storeActivationConfig',
  summary: 'Stores a configuration item of an activation',
  description: 'It stands above items of the application with the same key. A removed activation takes none.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  body: NewValue,
  response: Ok,
  async handle({ params: { id, key }, body: { value }, tx, parts }) {
    const { isRemoved, ...owner } = await requireActivation({ ...parts, db: tx }, id)
    if (isRemoved) throw new PawlError('ADMINISTRATION_REFUSED', { detail: `activation ${id} is removed` })
    await writeConfigItem({ ...parts, db: tx }, owner, { key, value, scope: 'ACTIVATION' })
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})
