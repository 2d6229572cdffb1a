// keystore/create: a temporary key for a few minutes of encryption. Spec: v3 §7.
import { activationKeysOf, serverPrivateKeyOf } from '../../../channel/secrets.ts'
import { openPrivateKey, places } from '../../../domain/secrets.ts'
import { ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import type { TemporaryKeyRequest } from '../../../protocol/protocol.ts'
import { findRequestParties, type RequestParties } from '../../../storage/activations.ts'
import { findMasterKeyPair } from '../../../storage/applications.ts'
import { deviceEndpoint, type DeviceParts } from '../parts.ts'
import { issueTemporaryKey, KeystoreRequest, KeystoreResponse, refuseTemporaryKey, verifyKeystoreRequest } from './issue.ts'

export const keystoreCreateV3 = deviceEndpoint({
  path: 'keystore/create',
  summary: 'Makes a temporary encryption key',
  description: 'For protocol 3.3. The JWT is signed with HS256; that of the answer with ES256.',
  errors: ['TEMPORARY_KEY_FAILED'],
  order: ['validate'],
  request: KeystoreRequest,
  response: KeystoreResponse,
  async handle({ request, parts }) {
    const { v3 } = parts.protocols
    const asked = v3.parseTemporaryKeyRequest(request.requestObject.jwt)
    if (asked === undefined) throw refuseTemporaryKey(parts, 'the JWT does not parse or lacks a claim')
    const parties = await findRequestParties(parts.db, asked.applicationKey, asked.activationId ?? '')
    const keys = activationKeysOf(parts.recordKeys, v3, parties.activation)
    const isGenuine = verifyKeystoreRequest(parts, parts.decoys.v3, asked, parties.version, keys)
    const reason = refusalOf(asked, parties)
    if (reason !== undefined || !isGenuine) throw refuseTemporaryKey(parts, reason ?? 'wrong MAC')
    return ok(await issueTemporaryKey(parts, asked, { ecdsa: await signingKeyOf(parts, parties, asked.activationId) }))
  },
})

function refusalOf(
  asked: Pick<TemporaryKeyRequest, 'activationId'>,
  { version, activation }: RequestParties,
): string | undefined {
  if (version?.isSupported !== true) return 'application version unknown or unsupported'
  if (asked.activationId === undefined) return undefined
  if (activation?.applicationId !== version.applicationId) return 'activation unknown or foreign'
  return activation.state === 'ACTIVE' || activation.state === 'BLOCKED' ? undefined : 'activation not active or blocked'
}

/** The master key in application scope, KEY_SERVER_PRIVATE in activation scope. */
async function signingKeyOf(parts: DeviceParts, { version, activation }: RequestParties, activationId: string | undefined) {
  if (activationId !== undefined && activation !== undefined) return serverPrivateKeyOf(parts.recordKeys, activation)
  const pair = version && (await findMasterKeyPair(parts.db, version.applicationId))
  if (pair === undefined) throw new PawlError('INTERNAL', { detail: 'the application has no master key pair' })
  return openPrivateKey(parts.recordKeys, places.masterPrivateKey(pair.masterKeyPairId), pair.privateKey)
}
