// activation/status: answers the encrypted state of an activation. Anybody may ask for it, but only its phone can read it. Spec: v3 §9.
import { Type } from '@sinclair/typebox'
import { plainEndpoint } from '../../../channel/flow/plain.ts'
import { codeKeysOf } from '../../../channel/secrets.ts'
import { isExpired } from '../../../domain/activation/registration.ts'
import { OptionalOrNull, AnyMembers, NotBlank, ObjectRequest, ObjectResponse, ok } from '../../../http/types.ts'
import { parseBase64, toBase64 } from '../../../lib/base64.ts'
import { requestRefused } from '../../../lib/errors.ts'
import type { StatusRow } from '../../../storage/activation/find.ts'
import type { DeviceParts } from '../parts.ts'

export const activationStatusV3 = plainEndpoint({
  path: 'activation/status',
  summary: 'Encrypted state of an activation',
  description: 'Only its phone can read it. An unknown activation answers random bytes.',
  errors: [],
  request: ObjectRequest(Type.Object({ activationId: NotBlank(255), challenge: OptionalOrNull(Type.String()) })),
  response: ObjectResponse(
    Type.Object({
      activationId: Type.String(),
      encryptedStatusBlob: Type.String(),
      nonce: Type.Optional(Type.String()),
      customObject: Type.Optional(AnyMembers),
    }),
  ),
  async handle({ request }, parts: DeviceParts) {
    const { activationId, challenge } = request.requestObject
    // All random bytes are drawn at once. A second draw for an unknown activation would reveal it by the time.
    const random = parts.platform.randomBytes(80)
    const iv = challenge == null ? undefined : { challenge: parseChallenge(challenge), nonce: random.subarray(0, 16) }
    const { activation, applicationsState } = await parts.readStatus({ activationId, at: new Date(parts.platform.now()) })
    const applicationId = activation?.applicationId
    const customObject = await parts.customObjects.find({ activationId, applicationId, applicationsState })
    const encryptedStatusBlob = toBase64(encryptStatus(parts, activation, iv, random.subarray(16)))
    return ok({
      activationId,
      encryptedStatusBlob,
      ...(iv && { nonce: toBase64(iv.nonce) }),
      ...(customObject && { customObject }),
    })
  },
})

/**
 * Encrypts the status of an activation. If the activation is unknown, has no keys yet, or its keys or counter were altered, the answer is random
 * bytes after the same computation. So nobody learns which ids exist. `random` has 64 bytes.
 */
function encryptStatus(
  parts: DeviceParts,
  activation: StatusRow | undefined,
  iv: { challenge: Uint8Array; nonce: Uint8Array } | undefined,
  random: Uint8Array,
) {
  const { recordKeys, platform, settings } = parts
  const [protocol, decoy] = [parts.protocols.v3, parts.decoys.v3]
  const known = codeKeysOf(recordKeys, protocol, activation)
  const { keys, ctrData } = known ?? { keys: decoy.activationKeys, ctrData: decoy.openCtrData() }
  const blob = protocol.encryptStatusBlob(
    keys,
    {
      state: activation && !isExpired(activation, platform.now()) ? activation.state : 'REMOVED',
      counter: activation?.counter ?? 0,
      ctrData,
      failedAttempts: activation?.failedAttempts ?? 0,
      maxFailedAttempts: activation?.maxFailedAttempts ?? 0,
      lookAhead: settings.counterLookAhead,
      // The highest generation to which this server can upgrade an activation (v3 §9.5).
      upgradeVersion: parts.protocols.v4.activationVersion,
    },
    iv,
    random.subarray(0, 32),
  )
  return known ? blob : random.subarray(32)
}

function parseChallenge(text: string): Uint8Array {
  const challenge = parseBase64(text, 16)
  if (challenge === undefined) throw requestRefused('requestObject.challenge', 'must be Base64 of 16 bytes')
  return challenge
}
