// Judges whether a code is right, and what that does to its activation. Nothing is read or stored here.
import { decideAuthentication } from '../../domain/activation/authentication.ts'
import { isExpired } from '../../domain/activation/registration.ts'
import type { ActivationKeys, CodeMatch, CounterMove, Protocol } from '../../protocol/protocol.ts'
import { isOlderVersion } from '../../protocol/wire/header.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import type { RequestParties } from '../../storage/request/parties.ts'
import type { ChannelParts } from '../parts.ts'
import { activationKeysOf, applicationSecretOf, ctrDataOf } from '../secrets.ts'
import type { CodeAttempt } from './attempt.ts'
import type { Judged, Refusal } from './decision.ts'

/** What a code is judged by; `method` in upper case. */
type CodeToJudge = CodeAttempt & { readonly method: string }

/**
 * Judges a code against `lookAhead` counter values. For an unknown version or activation the code is checked against a decoy, which costs the
 * same.
 */
export function judgeCode(
  parts: ChannelParts,
  protocol: Protocol,
  code: CodeToJudge,
  { version, activation }: RequestParties,
  lookAhead: number,
): Judged {
  const { header, goodFor } = code
  const keys = activationKeysOf(parts.recordKeys, protocol, activation)
  const { move, isPossessionRight } = matchOf(parts, protocol, code, { version, activation, keys }, lookAhead)
  if (activation === undefined) return { isRight: false, refusal: 'activation_unknown', isGuess: false, outcome: undefined }
  const isVersionRight = version?.isSupported === true && version.applicationId === activation.applicationId
  const isPendingAccepted =
    goodFor === 'CONFIRMING' && activation.isConfirmationPending && !isExpired(activation, parts.platform.now())
  const isBiometryMissing = activation.isBiometryEnabled === false && header.factors.includes('BIOMETRY')
  const lowest = [version?.minimumVersion, activation.highestVersion]
  const isTooLow = lowest.some((other) => typeof other === 'string' && isOlderVersion(header.version, other))
  const refusal = refusalOf({ activation, keys, isVersionRight, isTooLow, isPendingAccepted, isBiometryMissing, move })
  // Only the holder of the possession key can guess another factor. Whoever knows ids, which are public, can neither block a user nor use up
  // an operation, and neither can a code that comes twice or too late (v3 §10.5; DIVERGENCES#only-guesses-count).
  const isGuess = refusal === 'signature_does_not_match' && isPossessionRight
  const isCounted = refusal === undefined ? header.factors !== 'POSSESSION' : isGuess
  const outcome = decideAuthentication(activation, { valid: refusal === undefined, isCounted, isPendingAccepted })
  if (move !== undefined && outcome.valid) return { isRight: true, move, outcome }
  // A code that can never be right guesses nothing: one of another generation, under the key of another application or of none, for a
  // factor that is off, or of a version that the phone has left behind (v3 §10.5, v4 §7.4; DIVERGENCES#unknown-application-version). If it
  // counted, everybody who knows an activation's id could block its user. A wrong code for a pending upgrade changes nothing either,
  // because the row is that of the activation before its upgrade.
  const changesNothing =
    goodFor === 'UPGRADING' || keys === undefined || !isVersionRight || isTooLow || refusal === 'biometry_disabled'
  const { state, failedAttempts, blocksInRow } = activation
  return {
    isRight: false,
    refusal: refusal ?? 'activation_invalid_state',
    isGuess,
    outcome: changesNothing ? { valid: false, state, failedAttempts, blocksInRow } : outcome,
  }
}

/**
 * How the code matches, by `keys` of the activation or those of a decoy: `lookAhead` counter values are tried, or fewer where what it may cover is so
 * long that as many would take more than 192 KiB; two at least, so that one lost request never stops a phone (v3 §9.1, v4 §7.4).
 */
function matchOf(
  { recordKeys, decoys }: ChannelParts,
  protocol: Protocol,
  { header, method, resourceId, bodies }: CodeToJudge,
  { version, activation, keys }: RequestParties & { readonly keys: ActivationKeys | undefined },
  lookAhead: number,
): CodeMatch {
  const decoy = decoys[protocol.path]
  const applicationSecret = applicationSecretOf(recordKeys, decoy, version)
  const ctrData = (keys && ctrDataOf(recordKeys, activation)) ?? decoy.openCtrData()
  const { nonce } = header
  const readings = bodies.map((body) => protocol.signedData({ method, resourceId, nonce, body, applicationSecret }))
  const bytes = readings.reduce((sum, { length }) => sum + length, 0)
  const steps = Math.min(lookAhead, Math.max(2, Math.floor(BYTES_MAX / bytes)))
  let isPossessionRight = false
  for (const reading of readings) {
    const found = protocol.verifyAuthenticationCode(keys ?? decoy.activationKeys, ctrData, reading, header, steps)
    isPossessionRight ||= found.isPossessionRight
    if (found.move) return { move: found.move, isPossessionRight }
  }
  return { move: undefined, isPossessionRight }
}

function refusalOf(found: {
  activation: ActivationRow
  keys: object | undefined
  isVersionRight: boolean
  isTooLow: boolean
  isPendingAccepted: boolean
  isBiometryMissing: boolean
  move: CounterMove | undefined
}): Refusal | undefined {
  const { activation, keys, isVersionRight, isTooLow, isPendingAccepted, isBiometryMissing, move } = found
  if (!isVersionRight) return 'activation_invalid_application'
  if (activation.state !== 'ACTIVE' && !(activation.state === 'PENDING_COMMIT' && isPendingAccepted))
    return 'activation_invalid_state'
  if (keys === undefined) return 'activation_invalid_state_ctr_mismatch'
  if (isTooLow) return 'protocol_version_too_low'
  if (isBiometryMissing) return 'biometry_disabled'
  return move === undefined ? 'signature_does_not_match' : undefined
}

// A MAC of version 4.0 over 64 KiB takes 0.2 ms, so that a check of 64 KiB takes 0.5 ms. Bodies up to 7 KiB have the whole look-ahead of 20.
const BYTES_MAX = 192 * 1024
