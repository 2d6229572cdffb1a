// PUT /admin/applications/{id}/config/{key}: stores one item (v4 §9.11).
import { requireApplication } from '../../../../domain/application/application.ts'
import { writeConfigItem } from '../../../../domain/application/config-items.ts'
import { Ok } from '../../../../http/types.ts'
import { auditedEndpoint } from '../../audited-endpoint.ts'
import { OfScope, viewOfApplication } from './application.ts'
import { NewValue, OfKey, targetOf } from './item.ts'

export const applicationConfigStore = auditedEndpoint({
  method: 'PUT',
  path: '/admin/applications/:id/config/:key',
  operationId: 'storeApplicationConfig',
  summary: 'Stores a configuration item of an application',
  description:
    'Items in the scope `APPLICATION`, which is the default, are for every app, activated or not; those in `ACTIVATION` for activated ones.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  query: OfScope,
  body: NewValue,
  response: Ok,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, body: { value }, tx, parts }) {
    await requireApplication(tx, id)
    await writeConfigItem({ ...parts, db: tx }, { applicationId: id, activationId: null }, { key, value, scope })
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})
