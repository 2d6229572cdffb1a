// /admin/applications: settings and versions of applications, beyond the contract (cloud §10, administration paths).
import { Type } from '@sinclair/typebox'
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
import { type Db, inTransaction, isUniqueViolation } from '../../../storage/database.ts'
import { cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'

const VAULT_FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const Application = Type.Object({
  id: Type.String(),
  isDefault: Type.Boolean(),
  vaultFactors: Type.Array(Type.String()),
})
const Version = Type.Object({ name: Type.String(), appKey: Type.String(), isSupported: Type.Boolean() })
const CustomObject = Type.Record(Type.String(), Type.Unknown())
const ApplicationDetail = Type.Composite([
  Application,
  Type.Object({ customObject: Type.Optional(CustomObject), versions: Type.Array(Version) }),
])
const OfApplication = Type.Object({ id: Identifier })

export const applicationsList = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications',
  roles: ['admin'],
  response: Type.Object({ applications: Type.Array(Application) }),
  async handle({ parts }) {
    return { applications: (await listApplications(parts.db)).map(toApplication) }
  },
})

export const applicationDetail = cloudEndpoint({
  method: 'GET',
  path: '/admin/applications/:id',
  roles: ['admin'],
  params: OfApplication,
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  handle: ({ params, parts }) => readDetail(parts.db, params.id),
})

export const applicationChange = cloudEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id',
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
})

export const versionCreate = cloudEndpoint({
  method: 'POST',
  path: '/admin/applications/:id/versions',
  roles: ['admin'],
  params: OfApplication,
  body: Type.Object({ name: Identifier }),
  response: ApplicationDetail,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, body: { name }, parts }) {
    await readDetail(parts.db, id)
    try {
      await addVersion(parts, id, name)
    } catch (error) {
      if (isUniqueViolation(error))
        throw new PawlError('ADMINISTRATION_REFUSED', { detail: `version ${name} exists`, cause: error })
      throw error
    }
    return readDetail(parts.db, id)
  },
})

export const versionChange = cloudEndpoint({
  method: 'PATCH',
  path: '/admin/applications/:id/versions/:name',
  roles: ['admin'],
  params: Type.Object({ id: Identifier, name: Identifier }),
  body: Type.Object({ isSupported: Type.Boolean() }),
  response: ApplicationDetail,
  async handle({ params: { id, name }, body: { isSupported }, parts }) {
    if (!(await setVersionSupported(parts.db, id, name, isSupported))) throw unknown(`version ${name} of ${id}`)
    return readDetail(parts.db, id)
  },
})

async function readDetail(db: Db, id: string) {
  const application = await findApplication(db, id)
  if (application === undefined) throw unknown(`application ${id}`)
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
