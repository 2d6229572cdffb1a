// keystore/create: a temporary key for a few minutes of encryption. Spec: v3 §7.
import { Type } from '@sinclair/typebox'
import { activationKeysOf, applicationSecretOf, serverPrivateKeyOf } from '../../../channel/secrets.ts'
import { openPrivateKey, places } from '../../../domain/secrets.ts'
import { NotBlank, ObjectRequest, ObjectResponse, ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { TemporaryKeyRequest } from '../../../protocol/protocol.ts'
import { findRequestParties, type RequestParties } from '../../../storage/activations.ts'
import { findMasterKeyPair } from '../../../storage/applications.ts'
import { insertTemporaryKey } from '../../../storage/temporary-keys.ts'
import { deviceEndpoint, type DeviceParts } from '../parts.ts'

export const keystoreCreate = deviceEndpoint({
  path: 'keystore/create',
  summary: 'Makes a temporary encryption key',
  description: 'For protocol 3.3. The JWT is signed with HS256; that of the answer with ES256.',
  errors: ['TEMPORARY_KEY_FAILED'],
  order: ['validate'],
  request: ObjectRequest(Type.Object({ jwt: NotBlank(8192) })),
  response: ObjectResponse(Type.Object({ jwt: Type.String() })),
  async handle({ request, parts }) {
    const asked = parts.protocol.parseTemporaryKeyRequest(request.requestObject.jwt)
    if (asked === undefined) throw refuse(parts, 'the JWT does not parse or lacks a claim')
    const parties = await findRequestParties(parts.db, asked.applicationKey, asked.activationId ?? '')
    const isGenuine = verify(parts, asked, parties)
    const reason = refusalOf(asked, parties)
    if (reason !== undefined || !isGenuine) throw refuse(parts, reason ?? 'wrong MAC')
    return ok({ jwt: await issue(parts, asked, parties) })
  },
})

/** Always computed: a missing party is checked against the decoy. */
function verify(
  { recordKeys, protocol, decoy }: DeviceParts,
  asked: TemporaryKeyRequest,
  { version, activation }: RequestParties,
): boolean {
  const keys = activationKeysOf(recordKeys, protocol, activation) ?? decoy.activationKeys
  return asked.verify(applicationSecretOf(recordKeys, decoy, version), asked.activationId === undefined ? undefined : keys)
}

function refusalOf(asked: TemporaryKeyRequest, { version, activation }: RequestParties): string | undefined {
  if (version?.isSupported !== true) return 'application version unknown or unsupported'
  if (asked.activationId === undefined) return undefined
  if (activation?.applicationId !== version.applicationId) return 'activation unknown or foreign'
  return activation.state === 'ACTIVE' || activation.state === 'BLOCKED' ? undefined : 'activation not active or blocked'
}

async function issue(parts: DeviceParts, asked: TemporaryKeyRequest, parties: RequestParties): Promise<string> {
  const { platform, recordKeys, settings } = parts
  const temporaryKeyId = platform.uuid()
  const issuedAt = platform.now()
  const expiresAt = issuedAt + settings.temporaryKeyValiditySeconds * 1000
  const { applicationKey, activationId } = asked
  const terms = { temporaryKeyId, issuedAt, expiresAt, salt: platform.randomBytes(32) }
  const issued = await asked.issue(terms, { ecdsa: await signingKeyOf(parts, parties, activationId) })
  if (issued === undefined) throw refuse(parts, 'the keys of the request are not valid')
  await insertTemporaryKey(parts.db, {
    temporaryKeyId,
    applicationKey,
    activationId: activationId ?? null,
    privateKey: recordKeys.seal(places.temporaryPrivateKey(temporaryKeyId), issued.envelopeKey),
    expiresAt: new Date(expiresAt),
  })
  return issued.jwt
}

/** The master key in application scope, KEY_SERVER_PRIVATE in activation scope. */
async function signingKeyOf(parts: DeviceParts, { version, activation }: RequestParties, activationId: string | undefined) {
  if (activationId !== undefined && activation !== undefined) return serverPrivateKeyOf(parts.recordKeys, activation)
  const pair = version && (await findMasterKeyPair(parts.db, version.applicationId))
  if (pair === undefined) throw new PawlError('INTERNAL', { detail: 'the application has no master key pair' })
  return openPrivateKey(parts.recordKeys, places.masterPrivateKey(pair.masterKeyPairId), pair.privateKey)
}

function refuse(parts: DeviceParts, reason: string): PawlError {
  parts.events.temporaryKeyRefused({ reason })
  return new PawlError('TEMPORARY_KEY_FAILED', { detail: reason })
}
