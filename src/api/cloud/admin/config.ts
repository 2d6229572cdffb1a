// /admin/applications/{id}/config and /admin/activations/{id}/config: manage configuration items, which phones of 4.0 read (v4 §9.11, cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { writeConfigItem } from '../../../domain/application/config-items.ts'
import { OneOf, withExample } from '../../../http/types.ts'
import { administrationRefused, notFound } from '../../../lib/errors.ts'
import { findActivation } from '../../../storage/activation/find.ts'
import { type ConfigOwner, deleteConfigItem, listConfigItems } from '../../../storage/application/config-items.ts'
import type { Db } from '../../../storage/database/database.ts'
import type { ConfigScope } from '../../../storage/database/schema.ts'
import { type AuditedCall, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Identifier, MadeId, OfId, OfMadeId, WordOfPath } from '../fields.ts'
import type { CloudParts } from '../parts.ts'

const Key = withExample(WordOfPath, 'payments.limit')

/** The apps that may read an item: every app of the application, or activated ones. */
const Scope = OneOf<ConfigScope>(['APPLICATION', 'ACTIVATION'])

const Item = Type.Object({ key: Key, value: Type.Unknown({ examples: [{ daily: 500 }] }), scope: Scope })
export type Item = Static<typeof Item>

const Items = Type.Object({ config: Type.Array(Item) })

const NewValue = Type.Object({
  value: withExample(Type.Unknown({ description: 'any JSON value, up to 4096 bytes' }), { daily: 500 }),
})

const OfKey = Type.Object({ id: Identifier, key: Key })

/** The parameters of a path with the key of an item of an activation. */
const OfActivationKey = Type.Object({ id: MadeId, key: Key })

type KeyCall<Q = unknown> = AuditedCall<unknown, Q, Static<typeof OfKey>>

/** The name of an item in the audit log. */
function targetOf(kind: 'application' | 'activation') {
  return ({ params: { id, key } }: KeyCall): string => `configuration item ${key} of ${kind} ${id}`
}

const OfScope = Type.Object({ scope: Type.Optional(Scope) })

/** The item of the path for the audit log; undefined when there is none. */
async function viewOfApplication({
  params: { id, key },
  query: { scope = 'APPLICATION' },
  parts,
}: KeyCall<Static<typeof OfScope>>) {
  const items = await listConfigItems(parts.db, { applicationId: id, activationId: null })
  return items.find((item) => item.key === key && item.scope === scope)
}

const applicationConfigList = adminRead({
  route: 'GET /admin/applications/:id/config',
  operationId: 'listApplicationConfig',
  summary: 'Lists the configuration items of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  response: Items,
  async handle({ params: { id }, parts }) {
    await requireApplication(parts.db, id)
    return { config: await listConfigItems(parts.db, { applicationId: id, activationId: null }) }
  },
})

const applicationConfigStore = auditedEndpoint({
  route: 'PUT /admin/applications/:id/config/:key',
  operationId: 'storeApplicationConfig',
  summary: 'Stores a configuration item of an application',
  description:
    'Items in the scope `APPLICATION`, which is the default, are for every app, activated or not; those in `ACTIVATION` for activated ones.',
  params: OfKey,
  query: OfScope,
  body: NewValue,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, body: { value }, parts }) {
    await requireApplication(parts.db, id)
    await writeConfigItem(parts, { applicationId: id, activationId: null }, { key, value, scope })
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})

const applicationConfigRemove = auditedEndpoint({
  route: 'DELETE /admin/applications/:id/config/:key',
  operationId: 'removeApplicationConfig',
  summary: 'Removes a configuration item of an application',
  params: OfKey,
  query: OfScope,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, parts }) {
    const isDeleted = await deleteConfigItem(parts.db, { applicationId: id, activationId: null }, { scope, key })
    if (!isDeleted) throw notFound('configuration item', key)
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})

/** The item of the path for the audit log; undefined when there is none. */
async function viewOfActivation({ params: { id, key }, parts }: KeyCall) {
  const activation = await findActivation(parts.db, id, new Date(parts.platform.now()))
  if (activation === undefined) return undefined
  const items = await listConfigItems(parts.db, { applicationId: activation.applicationId, activationId: id })
  return items.find((item) => item.key === key)
}

/** Throws ADMINISTRATION_REFUSED when there is no such activation. */
async function requireActivation(
  { db, platform }: Pick<CloudParts, 'platform'> & { readonly db: Db },
  id: string,
): Promise<ConfigOwner & { readonly isRemoved: boolean }> {
  const activation = await findActivation(db, id, new Date(platform.now()))
  if (activation === undefined) throw notFound('activation', id)
  return { applicationId: activation.applicationId, activationId: id, isRemoved: activation.state === 'REMOVED' }
}

const activationConfigList = adminRead({
  route: 'GET /admin/activations/:id/config',
  operationId: 'listActivationConfig',
  summary: 'Lists the configuration items of an activation',
  description: 'Its own, without those of its application.',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfMadeId,
  response: Items,
  handle: async ({ params: { id }, parts }) => ({
    config: await listConfigItems(parts.db, await requireActivation(parts, id)),
  }),
})

const activationConfigStore = auditedEndpoint({
  route: 'PUT /admin/activations/:id/config/:key',
  operationId: 'storeActivationConfig',
  summary: 'Stores a configuration item of an activation',
  description: 'It stands above items of the application with the same key. A removed activation takes none.',
  params: OfActivationKey,
  body: NewValue,
  async handle({ params: { id, key }, body: { value }, parts }) {
    const { isRemoved, ...owner } = await requireActivation(parts, id)
    if (isRemoved) throw administrationRefused('activation', `activation ${id} is removed`)
    await writeConfigItem(parts, owner, { key, value, scope: 'ACTIVATION' })
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})

const activationConfigRemove = auditedEndpoint({
  route: 'DELETE /admin/activations/:id/config/:key',
  operationId: 'removeActivationConfig',
  summary: 'Removes a configuration item of an activation',
  params: OfActivationKey,
  async handle({ params: { id, key }, parts }) {
    const owner = await requireActivation(parts, id)
    if (!(await deleteConfigItem(parts.db, owner, { scope: 'ACTIVATION', key }))) throw notFound('configuration item', key)
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})

export const configEndpoints = [
  applicationConfigList,
  applicationConfigStore,
  applicationConfigRemove,
  activationConfigList,
  activationConfigStore,
  activationConfigRemove,
]
