// Offline approvals on the channel's side: the personalised QR code, and the one-time password checked like a code (v3 §15).
import { decideAuthentication } from '../domain/activation/authentication.ts'
import type { OfflineChannel, OtpAttempt } from '../domain/operation/parts.ts'
import type { CodeMatch, OfflineMatch, Protocol } from '../protocol/protocol.ts'
import type { ActivationRow } from '../storage/activation/find.ts'
import type { ChannelParts } from './parts.ts'
import { activationKeysOf, ctrDataOf, serverKeysOf } from './secrets.ts'
import { composeDecision, type Judged, noteBlock, storeDecision } from './stages/decision.ts'

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

  judgeOtp: async (activation, attempt) => {
    const found = findMatch(parts, protocolOf(protocols, activation), activation, attempt)
    const judged = judge(activation, found)
    const { applicationId, userId, activationId } = activation
    const { operationId } = attempt
    const audit = {
      applicationId,
      userId,
      activationId,
      eventType: judged.isRight ? 'offline_otp_ok' : 'offline_otp_invalid',
      eventData: JSON.stringify({ operationId, ...(judged.isRight && { factors: found.move?.factors }) }),
      occurredAt: new Date(parts.platform.now()),
    }
    const decision = await composeDecision(parts, activation, judged, audit, { madeUnder: null, strangersNetwork: undefined })
    if (decision === undefined) return undefined
    return {
      isRight: judged.isRight,
      factors: found.move?.factors.toLowerCase(),
      store: async (tx) => {
        const stored = await storeDecision(tx, decision, operationId)
        if (stored === undefined) return undefined
        const { verdict, operation } = stored
        noteBlock(parts, decision)
        const result = verdict.isRight ? 'accepted' : verdict.reason
        parts.events.authenticationChecked({ version: String(activation.protocolVersion), type: 'offline', result })
        return { operation }
      },
    }
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
): CodeMatch<OfflineMatch> {
  const keys = protocol && activationKeysOf(recordKeys, protocol, activation)
  const ctrData = ctrDataOf(recordKeys, activation)
  if (protocol === undefined || keys === undefined || ctrData === undefined) return { move: undefined, isPossessionRight: false }
  const { otp, operationId, operationData, nonce, totps } = attempt
  const isBiometryAllowed = attempt.isBiometryAllowed && activation.isBiometryEnabled !== false
  const request = { otp, operationId, operationData, nonceBase64: nonce, componentLength: 8, isBiometryAllowed, totps }
  return protocol.verifyOfflineOtp(keys, ctrData, request, settings.counterLookAhead)
}

/** However many combinations were tried, it is one attempt; a wrong one is a guess of the phone's holder, or nobody's (v3 §15.2). */
function judge(activation: ActivationRow, { move, isPossessionRight }: CodeMatch<OfflineMatch>): Judged {
  const isRight = move !== undefined
  const outcome = decideAuthentication(activation, { valid: isRight, isCounted: isRight || isPossessionRight })
  if (isRight && outcome.valid) return { isRight, move, outcome }
  return { isRight: false, refusal: 'signature_does_not_match', isGuess: !isRight && isPossessionRight, outcome }
}
