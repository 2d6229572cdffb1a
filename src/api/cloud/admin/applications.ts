// /admin/application and /admin/applications: manage applications with their settings, and show the values that a mobile app needs (cloud §10).
import { type Static, Type } from '@sinclair/typebox'
import {
  createApplication,
  readMobileConfiguration,
  readSdkConfiguration,
  requireTransfers,
  switchMultiDevice,
} from '../../../domain/application/application.ts'
import { serializeForPhones } from '../../../domain/application/config-items.ts'
import { listV4Algorithms, V4_ALGORITHMS } from '../../../domain/application/master-keys.ts'
import { formatListenerUrl } from '../../../http/connections.ts'
import { AnyMembers, named, ObjectResponse, ok, OneOf, OptionalOrNull, withExample } from '../../../http/types.ts'
import { notFound, requestRefused } from '../../../lib/errors.ts'
import {
  type ApplicationRow,
  findApplication,
  listApplications,
  listApplicationVersions,
  markDefaultApplication,
  setApplicationSettings,
} from '../../../storage/application/applications.ts'
import type { Db } from '../../../storage/database/database.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead, cloudEndpoint } from '../endpoint.ts'
import { Flags, Identifier, NewIdentifier, OfId } from '../fields.ts'
import type { CloudParts } from '../parts.ts'

/** Every version of the protocol, oldest first. */
const PROTOCOL_VERSIONS = ['3.0', '3.1', '3.2', '3.3', '4.0']

/** The applications to which phones of this one may hand over (mobile-token §9). */
const Transfers = Type.Array(
  named(
    'Transfer',
    Type.Object({
      targets: Type.Array(Identifier, { uniqueItems: true, minItems: 1, maxItems: 32 }),
      type: OneOf(['SPAWN', 'MOVE'], { description: 'MOVE: the phone that asked is removed when the other one is ACTIVE' }),
      initialFlags: Type.Optional(Flags),
    }),
  ),
  { maxItems: 32 },
)

/** The settings of an application, as a list shows them. */
const Application = named(
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
    isMultiDevice: Type.Boolean({ description: 'whether a user may have several phones' }),
  }),
)
export type Application = Static<typeof Application>

const Version = Type.Object({ name: Type.String(), appKey: Type.String(), isSupported: Type.Boolean() })

const Detail = Type.Composite([
  Application,
  Type.Object({ customObject: Type.Optional(AnyMembers), transfers: Transfers, versions: Type.Array(Version) }),
])

export const ApplicationDetail = ObjectResponse(Detail)

export const auditedApplication: Audited<{ readonly id: string }> = {
  target: ({ params: { id } }) => `application ${id}`,
  view: ({ params: { id }, parts }) => viewApplication(parts.db, id),
}

/** An application with its versions, without secrets. Throws ADMINISTRATION_REFUSED when there is none. */
export async function readApplicationDetail(db: Db, id: string) {
  const detail = await viewApplication(db, id)
  if (detail === undefined) throw notFound('application', id)
  return detail
}

/** Reads an application with its versions, without secrets. Undefined when there is none. */
async function viewApplication(db: Db, id: string) {
  const application = await findApplication(db, id)
  if (application === undefined) return undefined
  const { customObject, transfers } = application
  const versions = await listApplicationVersions(db, id)
  return {
    ...toApplication(application),
    ...(customObject !== null && { customObject }),
    transfers: transfers.map(({ targets, initialFlags, ...transfer }) => ({
      targets: [...targets],
      ...transfer,
      ...(initialFlags && { initialFlags: [...initialFlags] }),
    })),
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
  isMultiDevice,
}: ApplicationRow) => ({
  id: applicationId,
  isDefault,
  vaultFactors: [...vaultFactors],
  algorithms: [...listV4Algorithms(algorithms)],
  isProtocol3Admitted,
  qrSignatureCurve: isProtocol3Admitted ? ('P-256' as const) : ('P-384' as const),
  roles: [...roles],
  ...(minimumVersion !== null && { minimumProtocolVersion: minimumVersion }),
  isMultiDevice,
})

const ApplicationConfiguration = ObjectResponse(
  Type.Object({
    serviceBaseUrl: Type.String({ examples: ['https://phones.bank.example'] }),
    masterServerPublicKey: Type.String({
      description: 'Base64 of the point that verifies QR codes: of P-256, 65 bytes, or of P-384, 97 bytes',
    }),
    qrSignatureCurve: Type.Optional(
      Type.Literal('P-384', {
        description: 'the curve of the key where it is not P-256: the application does not admit protocol 3',
      }),
    ),
    appKey: Type.String({ description: 'Base64 of 16 bytes', examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='] }),
    appSecret: Type.String({ description: 'Base64 of 16 bytes', examples: ['Q0P6F8pPaQr8vFzH6MDh1g=='] }),
  }),
)

/**
 * The URL in front of /pa/v3: the configured one, else that of the listener for phones. A listener on every interface has the host name of `origin`,
 * which is that of the request, on either listener. Throws REQUEST_INVALID when it is needed and the request has no host.
 */
function baseUrlOf({ settings, publicListener }: Pick<CloudParts, 'settings' | 'publicListener'>, origin: string): string {
  const { address } = publicListener
  if (settings.publicUrl !== undefined) return settings.publicUrl
  if (address && !EVERY_INTERFACE.has(address.address)) return formatListenerUrl(address)
  if (!URL.canParse(origin)) throw requestRefused('Host', 'must be the host of this server')
  return address ? `http://${new URL(origin).hostname}:${address.port}` : origin
}

const EVERY_INTERFACE: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

const applicationCreate = auditedEndpoint({
  route: 'POST /admin/application',
  operationId: 'createApplication',
  summary: 'Creates an application',
  body: Type.Object({ id: NewIdentifier }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ body: { id }, parts, origin }) {
    await createApplication(parts, id)
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id)) })
  },
  audited: {
    target: ({ body: { id } }) => `application ${id}`,
    view: ({ body: { id }, parts }) => viewApplication(parts.db, id),
  },
})

const applicationRead = cloudEndpoint({
  route: 'GET /admin/application',
  operationId: 'readApplicationConfiguration',
  summary: 'What a mobile app needs of its application',
  errors: ['ADMINISTRATION_REFUSED'],
  roles: ['admin'],
  query: Type.Object({ id: Identifier, version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationConfiguration,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ query: { id, version }, parts, origin }) {
    return ok({ serviceBaseUrl: baseUrlOf(parts, origin), ...(await readMobileConfiguration(parts, id, version)) })
  },
})

const applicationsList = adminRead({
  route: 'GET /admin/applications',
  operationId: 'listApplications',
  summary: 'Lists applications',
  response: Type.Object({ applications: Type.Array(Application) }),
  handle: async ({ parts }) => ({ applications: (await listApplications(parts.db)).map(toApplication) }),
})

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
export type ApplicationDetailWithKeys = Static<typeof ApplicationDetailWithKeys>

const applicationDetail = adminRead({
  route: 'GET /admin/applications/:id',
  operationId: 'readApplication',
  summary: 'Settings and versions of an application, and what a mobile app needs of it',
  description: 'Keys are those of `version`, by default of `default`, else of the oldest version that is switched on.',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  query: Type.Object({ version: Type.Optional(withExample(Identifier, 'default')) }),
  response: ApplicationDetailWithKeys,
  invalidAs: 'ADMINISTRATION_REFUSED',
  async handle({ params: { id }, query: { version }, parts, caller, origin }) {
    const detail = await readApplicationDetail(parts.db, id)
    const { appSecret, mobileSdkConfig, ...publicValues } = await readSdkConfiguration(parts, id, version)
    const secretValues = caller.role === 'admin' && { appSecret, mobileSdkConfig }
    return ok({ ...detail, serviceBaseUrl: baseUrlOf(parts, origin), ...publicValues, ...secretValues })
  },
})

const VAULT_FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const ApplicationRole = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,64}$',
  description: 'must be 1 to 64 letters, digits, `_`, `.` or `-`',
  examples: ['retail'],
})

const applicationChange = auditedEndpoint({
  route: 'PATCH /admin/applications/:id',
  operationId: 'changeApplication',
  summary: 'Changes the settings of an application',
  description:
    'What is left out stays. `customObject` goes into the answers of activation/status, for anybody to read; null removes it. ' +
    '`minimumProtocolVersion`: null takes every version; with 4.0, phones of protocol 3 cannot start their upgrade any more, because its start ' +
    'has a code of theirs. `transfers` stand in place of all there were; a target stands in one entry.',
  params: OfId,
  body: Type.Object({
    isDefault: Type.Optional(
      Type.Literal(true, { description: 'makes it the default application, in place of the one that is' }),
    ),
    vaultFactors: Type.Optional(Type.Array(named('VaultFactors', Type.String({ enum: VAULT_FACTORS })), { uniqueItems: true })),
    customObject: OptionalOrNull(AnyMembers),
    algorithms: Type.Optional(
      Type.Array(named('Algorithm', Type.String({ enum: [...V4_ALGORITHMS] })), {
        uniqueItems: true,
        description: 'none: all of protocol 4.0',
      }),
    ),
    isProtocol3Admitted: Type.Optional(
      Type.Boolean({
        description:
          'false: no phone of protocol 3 is bound any more, and QR codes of registrations are signed for phones of 4.0',
      }),
    ),
    roles: Type.Optional(Type.Array(ApplicationRole, { uniqueItems: true, maxItems: 32 })),
    minimumProtocolVersion: OptionalOrNull(Type.String({ enum: PROTOCOL_VERSIONS })),
    isMultiDevice: Type.Optional(
      Type.Boolean({ description: 'whether a user may have several phones; not taken back while a user has several' }),
    ),
    transfers: Type.Optional(Transfers),
  }),
  response: ApplicationDetail,
  async handle({ params: { id }, body, parts }) {
    const { isDefault, vaultFactors, customObject, algorithms, isProtocol3Admitted, roles, minimumProtocolVersion, transfers } =
      body
    const serialized = customObject && serializeForPhones('customObject', customObject)
    await readApplicationDetail(parts.db, id)
    if (transfers) await requireTransfers(parts.db, id, transfers)
    if (isDefault) await markDefaultApplication(parts.db, id)
    if (body.isMultiDevice !== undefined)
      await switchMultiDevice(parts.db, id, body.isMultiDevice, new Date(parts.platform.now()))
    await setApplicationSettings(parts.db, id, {
      // Possession and knowledge always open the vault.
      vaultFactors: vaultFactors && [...new Set(['POSSESSION_KNOWLEDGE', ...vaultFactors])],
      customObject: serialized,
      algorithms,
      isProtocol3Admitted,
      roles,
      minimumVersion: minimumProtocolVersion,
      transfers,
    })
    return ok(await readApplicationDetail(parts.db, id))
  },
  audited: auditedApplication,
})

export const applicationEndpoints = [applicationCreate, applicationRead, applicationsList, applicationDetail, applicationChange]
