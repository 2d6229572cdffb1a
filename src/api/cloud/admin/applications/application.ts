// What the endpoints of applications share: the schemas, and an application as administrators and the audit log see it (cloud §10).
import { Type } from '@sinclair/typebox'
import { listV4Algorithms, qrSignatureCurveOf } from '../../../../domain/application/master-keys.ts'
import { AnyMembers, ObjectResponse, named } from '../../../../http/types.ts'
import { notFound } from '../../../../lib/errors.ts'
import { type ApplicationRow, findApplication, listApplicationVersions } from '../../../../storage/applications.ts'
import type { Db } from '../../../../storage/database.ts'
import type { Audited } from '../../audited-endpoint.ts'
import { Identifier } from '../../fields.ts'

/** Every version of the protocol, oldest first. */
export const PROTOCOL_VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0']

/** The settings, as a list shows them. */
export const Application = named(
  'Application',
  Type.Object({
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
  }),
)

const Version = Type.Object({ name: Type.String(), appKey: Type.String(), isSupported: Type.Boolean() })

/** JSON that goes into the answers of activation/status. */
export const CustomObject = AnyMembers

/** Settings and versions. */
export const Detail = Type.Composite([
  Application,
  Type.Object({ customObject: Type.Optional(CustomObject), versions: Type.Array(Version) }),
])

export const ApplicationDetail = ObjectResponse(Detail)

/** Of the path. */
export const OfApplication = Type.Object({ id: Identifier })

/** How changes of an application are recorded. */
export const auditedApplication: Audited<unknown, unknown, { readonly id: string }, unknown> = {
  target: ({ params: { id } }) => `application ${id}`,
  view: ({ params: { id }, tx }) => viewApplication(tx, id),
}

/** Throws ADMINISTRATION_REFUSED when there is none. */
export async function readApplicationDetail(db: Db, id: string) {
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
    ...(customObject !== null && { customObject }),
    versions: versions.map(({ name, applicationKey, isSupported }) => ({ name, appKey: applicationKey, isSupported })),
  }
}

export const toApplication = ({
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
  vaultFactors: [...vaultFactors],
  algorithms: [...listV4Algorithms(algorithms)],
  isProtocol3Admitted,
  qrSignatureCurve: qrSignatureCurveOf({ isProtocol3Admitted }),
  roles: [...roles],
  ...(minimumVersion !== null && { minimumProtocolVersion: minimumVersion }),
})
