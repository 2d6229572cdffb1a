// /admin/applications: settings and versions of applications, beyond the contract (cloud §10, administration paths).
import { Type } from '@sinclair/typebox'
import { addVersion, readSdkConfiguration } from '../../../domain/application/application.ts'
import { serializeCustomObject } from '../../../domain/application/custom-object.ts'
import { listV4Algorithms, qrSignatureCurveOf, V4_ALGORITHMS } from '../../../domain/application/master-keys.ts'
import { AnyMembers, ObjectResponse, ok, withExample } from '../../../http/types.ts'
import { notFound } from '../../../lib/errors.ts'
import {
  type ApplicationRow,
  findApplication,
  listApplications,
  listApplicationVersions,
  markDefaultApplication,
  setApplicationSettings,
  setVersionSupported,
} from '../../../storage/applications.ts'
import { type Db, inTransaction } from '../../../storage/database.ts'
import { type Audited, cloudEndpoint } from '../endpoint.ts'
import { Identifier } from '../fields.ts'
import { baseUrlOf } from './base-url.ts'

/** Every version of the protocol, oldest first. */
const PROTOCOL_VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0']
const VAULT_FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const Application = Type.Object({
  id: Type.String(),
  isDefault: Type.Boolean(),
  vaultFactors: Type.Array(Type.String()),
  algorithms: Type.Array(Type.String({ examples: ['EC_P384'] }), { description: 'of protocol 4.0, that phones may use' }),
  isProtocol3Admitted: Type.Boolean(),
  qrSignatureCurve: Type.String({
    enum: ['P-256', 'P-384'],
    description: 'what signs QR codes of registrations: P-256 as long as protocol 3 is admitted',
  }),
  roles: Type.Array(Type.String({ examples: ['retail'] })),
  minimumProtocolVersion: Type.Optional(
    Type.String({
      enum: PROTOCOL_VERSIONS,
      description: 'older phones are not bound and their codes are refused; every version is taken without it',
    }),
  ),
})
const Version = Type.Object({ name: Type.String(), appKey: Type.String(), isSupported: Type.Boolean() })
const CustomObject = AnyMembers
const Detail = Type.Composite([
  Application,
  Type.Object({ customObject: Type.Optional(CustomObject), versions: Type.Array(Version) }),
])
const ApplicationDetail = ObjectResponse(Detail)
const ApplicationDetailWithKeys = ObjectResponse(
  Type.Composite([
    Detail,
    Type.Object({
      serviceBaseUrl: Type.String({ examples: ['https://phones.bank.example'] }),
      masterServerPublicKey: Type.String({ description: 'Base64 of the point on `qrSignatureCurve` that verifies QR codes' }),
      appKey: Type.String({ description: 'Base64 of 16 bytes', examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='] }),
      appSecret: Type.Optional(Type.String({ description: 'Base64 of 16 bytes; for administrators only' })),
      mobileSdkConfig: Type.Optional(
        Type.String({ description: 'Base64; all that an SDK of protocol 4.0 needs of a version; for administrators only' }),
      ),
    }),
  ]),
)
const ApplicationRole = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`',
  examples: ['retail'],
})
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
  summary: 'Settings and versions of an application, and what a mobile app needs of it',
  description: 'Keys are those of `version`, by default of `default`, else of the oldest version that is switched on.',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin', 'read-only'],
  params: OfApplication,
  query: Type.Object({ version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationDetailWithKeys,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, query: { version }, parts, caller, origin }) {
    const detail = await readDetail(parts.db, id)
    const { appSecret, mobileSdkConfig, ...publicValues } = await readSdkConfiguration(parts, id, version)
    const secretValues = caller.role === 'admin' && { appSecret, mobileSdkConfig }
    return ok({ ...detail, serviceBaseUrl: baseUrlOf(parts, origin), ...publicValues, ...secretValues })
  },
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
    algorithms: Type.Optional(
      Type.Array(Type.String({ enum: [...V4_ALGORITHMS] }), { uniqueItems: true, description: 'none: all of protocol 4.0' }),
    ),
    /** False: no phone of protocol 3 is bound any more, and QR codes of registrations are signed for phones of 4.0. */
    isProtocol3Admitted: Type.Optional(Type.Boolean()),
    roles: Type.Optional(Type.Array(ApplicationRole, { uniqueItems: true, maxItems: 32 })),
    /** Null: any. With 4.0, phones of protocol 3 cannot start their upgrade any more: its start has a code of theirs. */
    minimumProtocolVersion: Type.Optional(Type.Union([Type.String({ enum: PROTOCOL_VERSIONS }), Type.Null()])),
  }),
  response: ApplicationDetail,
  async handle({ params: { id }, body, parts }) {
    const { isDefault, vaultFactors, customObject, algorithms, isProtocol3Admitted, roles, minimumProtocolVersion } = body
    const serialized = customObject && serializeCustomObject(customObject)
    await readDetail(parts.db, id)
    await inTransaction(parts.db, async (tx) => {
      if (isDefault) await markDefaultApplication(tx, id)
      await setApplicationSettings(tx, id, {
        // Possession and knowledge always opens the vault.
        vaultFactors: vaultFactors && [...new Set(['POSSESSION_KNOWLEDGE', ...vaultFactors])].join(','),
        customObject: serialized,
        algorithms: algorithms?.join(','),
        isProtocol3Admitted,
        roles: roles?.join(','),
        minimumVersion: minimumProtocolVersion,
      })
    })
    return ok(await readDetail(parts.db, id))
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
    return ok(await readDetail(parts.db, id))
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
    if (!(await setVersionSupported(parts.db, id, name, isSupported))) throw notFound(`version ${name} of ${id}`)
    return ok(await readDetail(parts.db, id))
  },
  audited,
})

async function readDetail(db: Db, id: string) {
  const detail = await viewApplication(db, id)
  if (detail === undefined) throw notFound(`application ${id}`)
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

const toApplication = ({
  applicationId,
  isDefault,
  vaultFactors,
  algorithms,
  isProtocol3Admitted,
  roles,
  minimumVersion,
}: ApplicationRow) => ({
  id: applicationId,
  isDefault,
  vaultFactors: vaultFactors.split(','),
  algorithms: [...listV4Algorithms(algorithms)],
  isProtocol3Admitted,
  qrSignatureCurve: qrSignatureCurveOf({ isProtocol3Admitted }),
  roles: roles === '' ? [] : roles.split(','),
  ...(minimumVersion !== null && { minimumProtocolVersion: minimumVersion }),
})
