// status: answers the clock and the name of the server. Protocol 4.0 adds the algorithms of the server, or of an application. Spec: v3 §13, v4 §9.1,
// §2.1.
import { Type } from '@sinclair/typebox'
import { plainEndpoint } from '../../channel/flow/plain.ts'
import { listAllowedAlgorithms, SERVED_ALGORITHMS } from '../../domain/application/master-keys.ts'
import { ObjectResponse, ok, OptionalOrNull, withExample } from '../../http/types.ts'
import { PawlError } from '../../lib/errors.ts'
import { findApplicationOfVersion } from '../../storage/application/applications.ts'
import type { Db } from '../../storage/database/database.ts'
import type { DeviceParts } from './parts.ts'

/** The members of the answer in both generations. */
const ServerStatus = Type.Object({
  serverTime: Type.Integer({ description: 'milliseconds since 1970-01-01 UTC' }),
  application: Type.Object({ name: Type.String(), version: Type.String() }),
})

export const status = plainEndpoint({
  path: 'status',
  summary: 'Clock and name of the server',
  errors: [],
  response: ObjectResponse(ServerStatus),
  handle: async (_, parts: DeviceParts) => ok(serverStatusOf(parts)),
})

const serverStatusOf = ({ platform, settings }: DeviceParts) => ({
  serverTime: platform.now(),
  application: { name: settings.statusName, version: settings.statusVersion },
})

const ApplicationKey = Type.String({
  pattern: '^[A-Za-z0-9+/]{21}[AQgw]==$',
  description: 'must be Base64 of 16 bytes',
  examples: ['dVoIMqp0QyQh5zuHk0KKGQ=='],
})

export const statusV4 = plainEndpoint({
  path: 'status',
  summary: 'Clock and name of the server, and the algorithms of it or of an application',
  description: '`EC_P256` stands for protocol 3. Without `applicationKey` the list is that of the server.',
  errors: ['STATUS_FAILED'],
  request: Type.Object({ requestObject: OptionalOrNull(Type.Object({ applicationKey: OptionalOrNull(ApplicationKey) })) }),
  response: ObjectResponse(
    Type.Composite([
      ServerStatus,
      Type.Object({
        supportedAlgorithms: withExample(Type.Array(Type.String()), ['EC_P256', 'EC_P384']),
      }),
    ]),
  ),
  async handle({ request }, parts: DeviceParts) {
    const applicationKey = request.requestObject?.applicationKey ?? undefined
    const supportedAlgorithms = applicationKey === undefined ? SERVED_ALGORITHMS : await readAlgorithms(parts.db, applicationKey)
    return ok({ ...serverStatusOf(parts), supportedAlgorithms: [...supportedAlgorithms] })
  },
})

async function readAlgorithms(db: Db, applicationKey: string): Promise<readonly string[]> {
  const application = await findApplicationOfVersion(db, applicationKey)
  if (application === undefined) throw new PawlError('STATUS_FAILED', { detail: 'no supported version has this key' })
  return listAllowedAlgorithms(application)
}
