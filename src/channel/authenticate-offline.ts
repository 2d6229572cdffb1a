// Offline approvals on the channel's side: the personalised QR code, and the one-time password checked like a code (v3 §15).
import { decideAuthentication } from '../domain/authentication.ts'
import type { OfflineChannel, OtpAttempt } from '../domain/offline-approval.ts'
import { lostTooManyRaces } from '../lib/errors.ts'
import type { OfflineMatch, Protocol } from '../protocol/protocol.ts'
import { findActivation, type ActivationRow } from '../storage/activations.ts'
import type { ChannelParts } from './parts.ts'
import { activationKeysOf, ctrDataOf, serverKeysOf } from './secrets.ts'
import { type Judged, settleAttempt } from './settle-attempt.ts'

/** What offline approvals need of the channel. */
export const createOfflineChannel = (parts: ChannelParts, protocols: readonly Protocol[]): OfflineChannel => ({
  createPayload: (activation, { data, totp, nonce }) => {
    const protocol = protocolOf(protocols, activation)
    const keys = protocol && activationKeysOf(parts.recordKeys, protocol, activation)
    if (protocol === undefined || keys === undefined) return undefined
    const payload = { data, nonceBase64: nonce, ...(totp !== undefined && { totp }) }
    return protocol.createPersonalizedPayload(payload, {
      keys,
      openServerKeys: () => serverKeysOf(parts.recordKeys, protocol, activation),
    })
  },

  checkOtp: async (attempt, effect) => {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const activation = await findActivation(parts.db, attempt.activationId, new Date(parts.platform.now()))
      if (activation?.state !== 'ACTIVE') return undefined
      const match = findMatch(parts, protocolOf(protocols, activation), activation, attempt)
      const judged = judge(activation, match)
      const at = new Date(parts.platform.now())
      const audit = {
        applicationId: activation.applicationId,
        userId: activation.userId,
        activationId: activation.activationId,
        eventType: judged.move ? 'offline_otp_ok' : 'offline_otp_invalid',
        eventData: JSON.stringify({ operationId: attempt.operationId, ...(judged.move && match && { factors: match.factors }) }),
        occurredAt: at,
      }
      const settled = await settleAttempt(parts, activation, judged, audit, {
        accepted: null,
        effect: (tx, { refusal }) => effect(tx, { isRight: refusal === undefined, factors: match?.factors.toLowerCase() }),
      })
      if (settled) return settled.effect
    }
    throw lostTooManyRaces('activation')
  },
})

/** The generation an activation exchanged its keys with. */
const protocolOf = (protocols: readonly Protocol[], { protocolVersion }: ActivationRow): Protocol | undefined =>
  protocols.find(({ activationVersion }) => activationVersion === protocolVersion)

function findMatch(
  { recordKeys, settings }: ChannelParts,
  protocol: Protocol | undefined,
  activation: ActivationRow,
  attempt: OtpAttempt,
): OfflineMatch | undefined {
  const keys = protocol && activationKeysOf(recordKeys, protocol, activation)
  const ctrData = ctrDataOf(recordKeys, activation)
  if (protocol === undefined || keys === undefined || ctrData === undefined) return undefined
  const { otp, operationId, operationData, nonce, totps } = attempt
  const isBiometryAllowed = attempt.isBiometryAllowed && activation.isBiometryEnabled !== false
  const request = { otp, operationId, operationData, nonceBase64: nonce, componentLength: 8, isBiometryAllowed, totps }
  return protocol.verifyOfflineOtp(keys, ctrData, request, settings.counterLookAhead)
}

/** However many combinations were tried, it is one attempt, and never one of possession alone (v3 §15.2). */
function judge(activation: ActivationRow, match: OfflineMatch | undefined): Judged {
  const decision = decideAuthentication(activation, { valid: match !== undefined, isCounted: true })
  const refusal = match && decision.valid ? undefined : 'signature_does_not_match'
  return { refusal, move: decision.valid ? match : undefined, decision }
}

const ROUNDS_MAX = 128
