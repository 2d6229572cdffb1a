// /admin/applications: settings and versions of applications, beyond the contract (cloud §10, administration paths).
import { Type } from '@sinclair/typebox'
import { AnyMembers } from '../../../http/types.ts'
import { addVersion } from '../../../domain/application.ts'
import { serializeCustomObject } from '../../../domain/custom-object.ts'
import { PawlError } from '../../../lib/errors.ts'
import {
  type ApplicationRow,
  findApplication,
  listApplications,
  listApplicationVersions,
  markDefaultApplication,
  setCustomObject,
  setVaultFactors,
  setVersionSupported,
} from '../../../storage/applications.ts'
import { type Db, inTransaction } from '../../../storage/database.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'

const VAULT_FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const Application = Type.Object({
  id: Type.String(),
  isDefault: Type.Boolean(),
  vaultFactors: Type.Array(Type.String()),
})
const Version = Type.Object({ name: Type.String(), appKey: Type.String(), isSupported: Type.Boolean() })
const CustomObject = AnyMembers
const ApplicationDetail = Type.Composite([
  Application,
  Type.Object({ customObject: Type.Optional(CustomObject), versions: Type.Array(Version) }),
])
const OfApplication = Type.Object({ id: Identifier })

const audited: Audited<unknown, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id } }) => `application ${id}`,
  view: ({ params: { id }, parts }) => viewApplication(parts.db, id),
}

export const applicationsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications',
  summary: 'Lists applications',
  errors: [],
  roles: ['admin', 'read-only'],
  response: Type.Object({ applications: Type.Array(Application) }),
  async handle({ parts }) {
    return { applications: (await listApplications(parts.db)).map(toApplication) }
  },
})

export const applicationDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id',
  summary: 'Settings and versions of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfApplication,
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  handle: ({ params, parts }) => readDetail(parts.db, params.id),
})

export const applicationChange = cloudEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id',
  summary: 'Changes the settings of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({
    isDefault: Type.Optional(Type.Literal(true)),
    vaultFactors: Type.Optional(Type.Array(Type.String({ enum: VAULT_FACTORS }), { uniqueItems: true })),
    /** Goes into the answers of activation/status, for anybody to read; null removes it. */
    customObject: Type.Optional(Type.Union([CustomObject, Type.Null()])),
  }),
  response: ApplicationDetail,
  async handle({ params: { id }, body: { isDefault, vaultFactors, customObject }, parts }) {
    const serialized = customObject && serializeCustomObject(customObject)
    await readDetail(parts.db, id)
    await inTransaction(parts.db, async (tx) => {
      if (isDefault) await markDefaultApplication(tx, id)
      // Possession and knowledge always opens the vault.
      if (vaultFactors) await setVaultFactors(tx, id, [...new Set(['POSSESSION_KNOWLEDGE', ...vaultFactors])].join(','))
      if (serialized !== undefined) await setCustomObject(tx, id, serialized)
    })
    return readDetail(parts.db, id)
  },
  audited,
})

export const versionCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/versions',
  summary: 'Adds a version',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({ name: Identifier }),
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, body: { name }, parts }) {
    await readDetail(parts.db, id)
    await addVersion(parts, id, name)
    return readDetail(parts.db, id)
  },
  audited,
})

export const versionChange = cloudEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id/versions/:name',
  summary: 'Switches a version on or off',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  params: Type.Object({ id: Identifier, name: Identifier }),
  body: Type.Object({ isSupported: Type.Boolean() }),
  response: ApplicationDetail,
  async handle({ params: { id, name }, body: { isSupported }, parts }) {
    if (!(await setVersionSupported(parts.db, id, name, isSupported))) throw unknown(`version ${name} of ${id}`)
    return readDetail(parts.db, id)
  },
  audited,
})

async function readDetail(db: Db, id: string) {
  const detail = await viewApplication(db, id)
  if (detail === undefined) throw unknown(`application ${id}`)
  return detail
}

/** An application with its versions, without secrets; undefined when there is none. */
export async function viewApplication(db: Db, id: string) {
  const application = await findApplication(db, id)
  if (application === undefined) return undefined
  const { customObject } = application
  const versions = await listApplicationVersions(db, id)
  return {
    ...toApplication(application),
    ...(customObject !== null && { customObject: JSON.parse(customObject) as Record<string, unknown> }),
    versions: versions.map(({ name, applicationKey, isSupported }) => ({ name, appKey: applicationKey, isSupported })),
  }
}

const toApplication = ({ applicationId, isDefault, vaultFactors }: ApplicationRow) => ({
  id: applicationId,
  isDefault,
  vaultFactors: vaultFactors.split(','),
})

const unknown = (what: string): PawlError => new PawlError('ADMINISTRATION_REFUSED', { detail: `no ${what}` })
