// Judges whether a code is right, and how it changes its activation. Nothing is read or stored here.
import { decideAuthentication } from '../../domain/activation/authentication.ts'
import { isExpired } from '../../domain/activation/registration.ts'
import type { CodeMatch, Protocol } from '../../protocol/protocol.ts'
import { isOlderVersion } from '../../protocol/wire/header.ts'
import { composeSignedData } from '../../protocol/wire/request-data.ts'
import type { RequestParties } from '../../storage/request/lookup.ts'
import type { ChannelParts } from '../parts.ts'
import { applicationSecretOf, codeKeysOf } from '../secrets.ts'
import type { CodeAttempt } from './attempt.ts'
import type { Judged, Refusal } from './decision.ts'

/** The values by which a code is judged. `method` is in upper case. */
type CodeToJudge = CodeAttempt & { readonly method: string }

/**
 * Judges a code against `lookAhead` counter values. A code that is refused in any case, for example one of an unknown activation, is checked against
 * a decoy, which costs the same.
 */
export function judgeCode(
  parts: ChannelParts,
  protocol: Protocol,
  code: CodeToJudge,
  { version, activation }: RequestParties,
  lookAhead: number,
): Judged {
  const { header, goodFor } = code
  const known = codeKeysOf(parts.recordKeys, protocol, activation)
  const refused = refusalBefore(parts, code, { version, activation }, known !== undefined)
  // The search ends at a right code. If codes that are refused anyway were compared with the real keys, the time would reveal the right PIN to a
  // thief of the possession key, without a failed attempt.
  const tried = refused === undefined ? known : undefined
  const { move, isPossessionRight } = matchOf(parts, protocol, code, { version, known: tried }, lookAhead)
  if (activation === undefined || refused !== undefined)
    return { isRight: false, refusal: refused ?? 'activation_unknown', isGuess: false, outcome: undefined }
  // Only the holder of the possession key can guess another factor. Ids are public. A sender who knows only ids can neither block a user nor use up
  // an operation. Neither can a code that comes twice or too late (v3 §10.5; DIVERGENCES#only-guesses-count).
  const isGuess = move === undefined && isPossessionRight
  const isCounted = move === undefined ? isGuess : header.factors !== 'POSSESSION'
  const outcome = decideAuthentication(activation, { valid: move !== undefined, isCounted, isPendingAccepted: true })
  if (move !== undefined && outcome.valid) return { isRight: true, move, outcome }
  return {
    isRight: false,
    refusal: move === undefined ? 'signature_does_not_match' : 'activation_invalid_state',
    isGuess,
    // A wrong code for a pending upgrade changes nothing, because the row is that of the activation before its upgrade.
    outcome: goodFor === 'UPGRADING' ? undefined : outcome,
  }
}

/**
 * The reason why even a right code would be refused; undefined if the code has to be compared. Such a code guesses nothing and counts nothing.
 * Otherwise anybody who knows an activation's id could block its user (v3 §10.5, v4 §7.4; DIVERGENCES#unknown-application-version).
 */
function refusalBefore(
  { platform }: ChannelParts,
  { header, goodFor }: CodeToJudge,
  { version, activation }: RequestParties,
  hasKeys: boolean,
): Refusal | undefined {
  if (activation === undefined) return 'activation_unknown'
  if (version?.isSupported !== true || version.applicationId !== activation.applicationId) return 'activation_invalid_application'
  const { state, failedAttempts, maxFailedAttempts } = activation
  const isPendingAccepted =
    goodFor === 'CONFIRMING' &&
    activation.isConfirmationPending &&
    failedAttempts < maxFailedAttempts &&
    !isExpired(activation, platform.now())
  if (state !== 'ACTIVE' && !(state === 'PENDING_COMMIT' && isPendingAccepted)) return 'activation_invalid_state'
  if (!hasKeys) return 'activation_invalid_state_ctr_mismatch'
  const lowest = [version.minimumVersion, activation.highestVersion]
  if (lowest.some((other) => typeof other === 'string' && isOlderVersion(header.version, other)))
    return 'protocol_version_too_low'
  const isBiometryMissing = activation.isBiometryEnabled === false && header.factors.includes('BIOMETRY')
  return isBiometryMissing ? 'biometry_disabled' : undefined
}

/**
 * Compares a code by the keys of the activation or those of a decoy. It tries `lookAhead` counter values, or fewer if they would take more than 192
 * KiB because the covered bytes are long. It tries at least two, so that one lost request never stops a phone (v3 §9.1, v4 §7.4).
 */
function matchOf(
  { recordKeys, decoys }: ChannelParts,
  protocol: Protocol,
  { header, method, resourceId, bodies }: CodeToJudge,
  { version, known }: Pick<RequestParties, 'version'> & { readonly known: ReturnType<typeof codeKeysOf> },
  lookAhead: number,
): CodeMatch {
  const decoy = decoys[protocol.path]
  const applicationSecret = applicationSecretOf(recordKeys, decoy, version)
  const { keys, ctrData } = known ?? { keys: decoy.activationKeys, ctrData: decoy.openCtrData() }
  const { nonce } = header
  const readings = bodies.map((body) => composeSignedData({ method, resourceId, nonce, body, applicationSecret }))
  const bytes = readings.reduce((sum, { length }) => sum + length, 0)
  const steps = Math.min(lookAhead, Math.max(2, Math.floor(BYTES_MAX / bytes)))
  let isPossessionRight = false
  for (const reading of readings) {
    const found = protocol.verifyAuthenticationCode(keys, ctrData, reading, header, steps)
    isPossessionRight ||= found.isPossessionRight
    if (found.move) return { move: found.move, isPossessionRight }
  }
  return { move: undefined, isPossessionRight }
}

// A MAC of version 4.0 over 64 KiB takes 0.2 ms, so that a check of 64 KiB takes 0.5 ms. Bodies up to 7 KiB have the whole look-ahead of 20.
const BYTES_MAX = 192 * 1024
