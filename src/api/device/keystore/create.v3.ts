// keystore/create: issues a temporary key for a few minutes of encryption. Spec: v3 §7.
import { plainEndpoint } from '../../../channel/flow/plain.ts'
import { activationKeysOf } from '../../../channel/secrets.ts'
import { findParties } from '../../../channel/stages/code.ts'
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

export const keystoreCreateV3 = plainEndpoint({
  path: 'keystore/create',
  summary: 'Makes a temporary encryption key',
  description: 'For protocol 3.3. The JWT is signed with HS256; that of the answer with ES256.',
  errors: ['TEMPORARY_KEY_FAILED'],
  request: KeystoreRequest,
  response: KeystoreResponse,
  async handle({ request, client }, parts: DeviceParts) {
    const { v3 } = parts.protocols
    const asked = v3.parseTemporaryKeyRequest(request.requestObject.jwt)
    if (asked === undefined) throw refuseTemporaryKey(parts, 'the JWT does not parse or lacks a claim')
    limitTemporaryKeys(parts, client, asked)
    const parties = await findParties(parts, asked)
    const keys = activationKeysOf(parts.recordKeys, v3, parties.activation)
    const isGenuine = verifyKeystoreRequest(parts, parts.decoys.v3, asked, parties.version, keys)
    const { version, activation } = parties
    const reason = refusalOf(asked, parties)
    if (version === undefined || reason !== undefined || !isGenuine) throw refuseTemporaryKey(parts, reason ?? 'wrong MAC')
    return ok(await issueTemporaryKey(parts, v3, client, asked, { version, activation }))
  },
})

/** The reason to refuse a key; undefined if there is none. */
function refusalOf(
  asked: Pick<TemporaryKeyRequest, 'activationId'>,
  { version, activation }: RequestParties,
): string | undefined {
  if (version?.isSupported !== true) return 'application version unknown or unsupported'
  if (asked.activationId === undefined) return undefined
  if (activation?.applicationId !== version.applicationId) return 'activation unknown or foreign'
  return activation.state === 'ACTIVE' || activation.state === 'BLOCKED' ? undefined : 'activation not active or blocked'
}
