// keystore/create: issues a temporary key for a few minutes of encryption. Spec: v4 §4.
import { plainEndpoint } from '../../../channel/flow/plain.ts'
import { activationKeysOf } from '../../../channel/secrets.ts'
import { findParties } from '../../../channel/stages/code.ts'
import { listAllowedAlgorithms } from '../../../domain/application/master-keys.ts'
import { ok } from '../../../http/types.ts'
import type { TemporaryKeyRequest } from '../../../protocol/protocol.ts'
import type { RequestParties } from '../../../storage/request/lookup.ts'
import type { DeviceParts } from '../parts.ts'
import {
  issueTemporaryKey,
  KeystoreRequest,
  KeystoreResponse,
  limitTemporaryKeys,
  refuseTemporaryKey,
  verifyKeystoreRequest,
} from './issue.ts'

export const keystoreCreateV4 = plainEndpoint({
  path: 'keystore/create',
  summary: 'Makes a temporary encryption key',
  description:
    'The JWT is signed with HS384; the answer holds the JSON text of a JWS with a signature for each kind of key of the algorithm.',
  errors: ['TEMPORARY_KEY_FAILED'],
  request: KeystoreRequest,
  response: KeystoreResponse,
  async handle({ request, client }, parts: DeviceParts) {
    const { v4 } = parts.protocols
    const asked = v4.parseTemporaryKeyRequest(request.requestObject.jwt)
    if (asked === undefined) throw refuseTemporaryKey(parts, 'the JWT does not parse or lacks a claim')
    limitTemporaryKeys(parts, client, asked)
    const at = new Date(parts.platform.now())
    // A phone sets its clock by the answer. Until then its clock may differ by the window of requests.
    const isOver = asked.expiresAt !== undefined && at.getTime() / 1000 > asked.expiresAt + parts.settings.requestWindowSeconds
    // A phone that lost the answer of upgrade/confirm asks for its status with the new keys (v4 §10.3).
    const { version, activation } = await findParties(parts, asked, 'UPGRADING')
    const keys = activationKeysOf(parts.recordKeys, v4, activation)
    const isGenuine = verifyKeystoreRequest(parts, parts.decoys.v4, asked, version, keys)
    const reason = isOver ? 'the request has expired' : refusalOf(asked, { version, activation })
    if (version === undefined || reason !== undefined || !isGenuine) throw refuseTemporaryKey(parts, reason ?? 'wrong MAC')
    if (!listAllowedAlgorithms(version).includes(asked.algorithm))
      throw refuseTemporaryKey(parts, 'the application does not admit the algorithm')
    return ok(await issueTemporaryKey(parts, v4, client, asked, { version, activation }))
  },
})

/** The reason to refuse a key; undefined if there is none. An activation in any state gets a key, so that its phone can ask for the status. */
function refusalOf(
  { activationId, algorithm }: Pick<TemporaryKeyRequest, 'activationId' | 'algorithm'>,
  { version, activation }: RequestParties,
): string | undefined {
  if (version?.isSupported !== true) return 'application version unknown or unsupported'
  if (activationId === undefined) return undefined
  if (activation?.applicationId !== version.applicationId) return 'activation unknown or foreign'
  return activation.algorithm === algorithm ? undefined : 'not the algorithm of the activation'
}
