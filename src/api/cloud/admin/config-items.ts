// Configuration items that phones of protocol 4.0 read, of an application and of one activation (v4 §9.11, cloud §10).
import { Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import { readConfigItems, writeConfigItem } from '../../../domain/application/config-items.ts'
import { Ok, withExample } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import { findActivation } from '../../../storage/activations.ts'
import { type ConfigOwner, deleteConfigItem } from '../../../storage/config-items.ts'
import type { ConfigScope } from '../../../storage/schema.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'
import type { CloudParts } from '../parts.ts'

const ofApplication = '/admin/applications/:id/config'
const ofActivation = '/admin/activations/:id/config'

const Key = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`',
  examples: ['payments.limit'],
})
const Scope = Type.Unsafe<ConfigScope>(Type.String({ enum: ['APPLICATION', 'ACTIVATION'] }))
const Item = Type.Object({ key: Key, value: Type.Unknown({ examples: [{ daily: 500 }] }), scope: Scope })
const Items = Type.Object({ config: Type.Array(Item) })
const NewValue = Type.Object({
  value: withExample(Type.Unknown({ description: 'any JSON value, up to 4096 bytes' }), { daily: 500 }),
})
const OfOwner = Type.Object({ id: Identifier })
const OfKey = Type.Object({ id: Identifier, key: Key })
const OfScope = Type.Object({ scope: Type.Optional(Scope) })

interface KeyCall {
  readonly params: { readonly id: string; readonly key: string }
  readonly query: { readonly scope?: ConfigScope }
  readonly parts: Pick<CloudParts, 'db' | 'platform'>
}

export const applicationConfigList = cloudEndpoint({
  method: 'GET',
  path: ofApplication,
  summary: 'Lists the configuration items of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfOwner,
  response: Items,
  async handle({ params: { id }, parts }) {
    await requireApplication(parts.db, id)
    return { config: await readConfigItems(parts.db, { applicationId: id, activationId: null }) }
  },
})

export const applicationConfigStore = cloudEndpoint({
  method: 'PUT',
  path: `${ofApplication}/:key`,
  summary: 'Stores a configuration item of an application',
  description:
    'Items in the scope `APPLICATION`, which is the default, are for every app, activated or not; those in `ACTIVATION` for activated ones.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  query: OfScope,
  body: NewValue,
  response: Ok,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, body: { value }, parts }) {
    await requireApplication(parts.db, id)
    await writeConfigItem(parts, { applicationId: id, activationId: null }, { key, value, scope })
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})

export const applicationConfigRemove = cloudEndpoint({
  method: 'DELETE',
  path: `${ofApplication}/:key`,
  summary: 'Removes a configuration item of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  query: OfScope,
  response: Ok,
  async handle({ params: { id, key }, query: { scope = 'APPLICATION' }, parts }) {
    if (!(await deleteConfigItem(parts.db, { applicationId: id, activationId: null }, { scope, key }))) refuse(key)
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('application'), view: viewOfApplication },
})

export const activationConfigList = cloudEndpoint({
  method: 'GET',
  path: ofActivation,
  summary: 'Lists the configuration items of an activation',
  description: 'Its own, without those of its application.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfOwner,
  response: Items,
  handle: async ({ params: { id }, parts }) => ({
    config: await readConfigItems(parts.db, await requireActivation(parts, id)),
  }),
})

export const activationConfigStore = cloudEndpoint({
  method: 'PUT',
  path: `${ofActivation}/:key`,
  summary: 'Stores a configuration item of an activation',
  description: 'It stands above items of the application with the same key. A removed activation takes none.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  body: NewValue,
  response: Ok,
  async handle({ params: { id, key }, body: { value }, parts }) {
    const { isRemoved, ...owner } = await requireActivation(parts, id)
    if (isRemoved) throw new PawlError('ADMINISTRATION_REFUSED', { detail: `activation ${id} is removed` })
    await writeConfigItem(parts, owner, { key, value, scope: 'ACTIVATION' })
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})

export const activationConfigRemove = cloudEndpoint({
  method: 'DELETE',
  path: `${ofActivation}/:key`,
  summary: 'Removes a configuration item of an activation',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfKey,
  response: Ok,
  async handle({ params: { id, key }, parts }) {
    const owner = await requireActivation(parts, id)
    if (!(await deleteConfigItem(parts.db, owner, { scope: 'ACTIVATION', key }))) refuse(key)
    return { status: 'OK' as const }
  },
  audited: { target: targetOf('activation'), view: viewOfActivation },
})

function targetOf(kind: 'application' | 'activation') {
  return ({ params: { id, key } }: Pick<KeyCall, 'params'>): string => `configuration item ${key} of ${kind} ${id}`
}

async function viewOfApplication({ params: { id, key }, query: { scope = 'APPLICATION' }, parts }: KeyCall) {
  const items = await readConfigItems(parts.db, { applicationId: id, activationId: null })
  return items.find((item) => item.key === key && item.scope === scope)
}

async function viewOfActivation({ params: { id, key }, parts }: Pick<KeyCall, 'params' | 'parts'>) {
  const activation = await findActivation(parts.db, id, new Date(parts.platform.now()))
  if (activation === undefined) return undefined
  const items = await readConfigItems(parts.db, { applicationId: activation.applicationId, activationId: id })
  return items.find((item) => item.key === key)
}

/** Throws ADMINISTRATION_REFUSED when there is no such activation. */
async function requireActivation(
  { db, platform }: Pick<CloudParts, 'db' | 'platform'>,
  id: string,
): Promise<ConfigOwner & { readonly isRemoved: boolean }> {
  const activation = await findActivation(db, id, new Date(platform.now()))
  if (activation === undefined) throw notFound(`activation ${id}`)
  return { applicationId: activation.applicationId, activationId: id, isRemoved: activation.state === 'REMOVED' }
}

function refuse(key: string): never {
  throw notFound(`configuration item ${key}`)
}
