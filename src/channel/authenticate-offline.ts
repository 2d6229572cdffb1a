// Signs QR codes of offline approvals for an activation, and checks one-time passwords like codes (v3 §15).
import { decideAuthentication } from '../domain/activation/authentication.ts'
import { utf8 } from '../lib/bytes.ts'
import { networkOf } from '../lib/address.ts'
import { untilSettled } from '../lib/until-settled.ts'
import type { CodeMatch, Factors, OfflineMatch, OfflineOtp, PersonalizedPayload, Protocol } from '../protocol/protocol.ts'
import { OFFLINE_RESOURCE_ID } from '../protocol/wire/offline.ts'
import type { ActivationRow, ReadActivationRow } from '../storage/activation/find.ts'
import type { Tx } from '../storage/database/database.ts'
import type { UniqueValue } from '../storage/activation/unique-values.ts'
import type { LockedOperation } from '../storage/operation/operations.ts'
import type { DoorVerdict } from '../storage/request/door-verdicts.ts'
import type { ChannelParts } from './parts.ts'
import { activationKeysOf, codeKeysOf, serverKeysOf } from './secrets.ts'
import {
  type CodeDecision,
  type CodeVerdict,
  composeDecision,
  type Judged,
  noteBlock,
  storeDecision,
  storeDecisionAlone,
} from './stages/decision.ts'

/** A one-time password with which a user approves an operation. It is compared with the counter of an activation. */
interface OtpAttempt extends Omit<OfflineOtp, 'resourceId' | 'body' | 'componentLength'> {
  readonly operationId: string
  readonly operationData: string
}

/** The judgement of a one-time password, before it is stored. */
export interface OtpDecision {
  readonly isRight: boolean
  /** The factors that made a right password; undefined for a wrong one. */
  readonly factors: string | undefined
  /**
   * Moves the counter or counts the failure, and locks the operation. Undefined when the activation was changed since it was read: the caller
   * judges again.
   */
  readonly store: (tx: Tx) => Promise<{ readonly operation: LockedOperation | undefined } | undefined>
  /** Logs the decision, and remembers the phone of a right password. Called after the commit. */
  readonly note: () => void
}

/** The text of a QR code, signed for this activation. Undefined while the activation has no keys, and when they were altered in the database. */
export function signForActivation(
  { recordKeys, protocols }: ChannelParts,
  activation: ReadActivationRow,
  payload: PersonalizedPayload,
): string | undefined {
  const protocol = protocolOf(protocols, activation)
  const keys = protocol && activationKeysOf(recordKeys, protocol, activation)
  if (protocol === undefined || keys === undefined) return undefined
  return protocol.createPersonalizedPayload(payload, {
    keys,
    openServerKeys: () => serverKeysOf(recordKeys, protocol, activation),
  })
}

/** Reads the activation of an offline code, which names no version. Its counter is never lower than one that this process accepted. */
export async function findPhoneById(
  { authenticationStore, platform }: Pick<ChannelParts, 'authenticationStore' | 'platform'>,
  activationId: string,
): Promise<ReadActivationRow | undefined> {
  const { activation } = await authenticationStore.find({ applicationKey: '', activationId, at: new Date(platform.now()) })
  return activation
}

/** Judges a password for an ACTIVE activation. Nothing is stored yet. Undefined when the activation must be read again. */
export async function judgeOtp(
  parts: ChannelParts,
  activation: ActivationRow,
  attempt: OtpAttempt,
): Promise<OtpDecision | undefined> {
  const { operationId, operationData, ...given } = attempt
  const body = utf8(`${operationId}&${operationData}`)
  const protocol = protocolOf(parts.protocols, activation) ?? parts.protocols.v3
  const covered = { ...given, resourceId: OFFLINE_RESOURCE_ID, body, componentLength: 8 }
  const found = findMatch(parts, protocol, activation, covered)
  const judged = judge(activation, found)
  const { applicationId, userId, activationId } = activation
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
    store: (tx) => storeDecision(tx, decision, operationId),
    note: () => noteOffline(parts, decision),
  }
}

/** A one-time password for a text that a bank has shown in a QR code of its own (cloud §15.3). */
interface OfflineAttempt extends OfflineOtp {
  /** False when only biometry is accepted: a code of possession and knowledge is then refused. */
  readonly isKnowledgeAllowed?: boolean
}

/** The activation in question, the asking bank, and the text of the audit row. */
interface OfflineQuestion {
  readonly activationId: string
  /** The caller's application. An activation of another application counts as unknown. */
  readonly applicationId: string
  readonly verifiedBy: string
  readonly source: string
  readonly eventData: string
  /** The value that a right code uses up. */
  readonly use?: UniqueValue
  /** Throws if the same question was answered before. It is called before a code is answered as wrong. */
  readonly refuseKnown?: () => Promise<void>
  /** The verdict to store together with an outcome that moves the counter or counts a failure. */
  readonly keep?: (judged: OfflineVerdict) => DoorVerdict | undefined
}

/** The verdict about an offline code. */
export interface OfflineVerdict {
  readonly verdict: CodeVerdict
  /** The factors that made a right password; undefined for a wrong one. */
  readonly factors: Factors | undefined
}

/** Verifies an offline code, and stores the outcome before it returns. `factors` are those that made a right code. */
export async function verifyOfflineAtDoor(
  parts: ChannelParts,
  asked: OfflineQuestion,
  attempt: OfflineAttempt,
): Promise<OfflineVerdict & { readonly isUsedMeanwhile: boolean }> {
  return await untilSettled('activation', async () => {
    const at = new Date(parts.platform.now())
    const row = await findPhoneById(parts, asked.activationId)
    const activation = row?.applicationId === asked.applicationId ? row : undefined
    const protocol = (activation && protocolOf(parts.protocols, activation)) ?? parts.protocols.v3
    const found = findMatch(parts, protocol, activation, attempt)
    const judged = activation === undefined ? UNKNOWN : judge(activation, found)
    // The same request may have moved the counter since the look-up of its key.
    if (!judged.isRight) await asked.refuseKnown?.()
    const audit = {
      applicationId: activation?.applicationId ?? null,
      userId: activation?.userId ?? null,
      activationId: asked.activationId,
      eventType: judged.isRight ? 'offline_code_ok' : 'offline_code_invalid',
      eventData: asked.eventData,
      occurredAt: at,
      verifiedBy: asked.verifiedBy,
    }
    const strangersNetwork = activation === undefined ? networkOf(asked.source) : undefined
    const decision = await composeDecision(parts, activation, judged, audit, {
      madeUnder: null,
      strangersNetwork,
      use: asked.use,
    })
    if (decision === undefined) return undefined
    const { verdict } = decision
    const told = { verdict, factors: verdict.isRight ? found.move?.factors : undefined }
    const write = decision.write && { ...decision.write, kept: asked.keep?.(told) }
    const stored = await storeDecisionAlone(parts, { ...decision, write })
    if (stored === undefined) return undefined
    noteOffline(parts, decision)
    return { ...told, isUsedMeanwhile: stored === 'USED_MEANWHILE' }
  })
}

/** Logs a stored decision, and remembers the phone of a right password. */
function noteOffline(parts: ChannelParts, decision: CodeDecision): void {
  const { verdict } = decision
  noteBlock(parts, decision)
  const version = String(verdict.activation?.protocolVersion ?? 'unknown')
  parts.events.authenticationChecked({ version, type: 'offline', result: verdict.isRight ? 'accepted' : verdict.reason })
  if (verdict.isRight) parts.authenticationStore.remember({ version: undefined, activation: verdict.activation })
}

const UNKNOWN: Judged = { isRight: false, refusal: 'activation_unknown', isGuess: false, outcome: undefined }

/** The generation of the protocol in which an activation exchanged its keys. */
const protocolOf = ({ v3, v4 }: ChannelParts['protocols'], { protocolVersion }: ActivationRow): Protocol | undefined =>
  [v3, v4].find(({ activationVersion }) => activationVersion === protocolVersion)

function findMatch(
  { recordKeys, settings, decoys }: ChannelParts,
  protocol: Protocol,
  activation: ActivationRow | undefined,
  { isKnowledgeAllowed, ...otp }: OfflineAttempt,
): CodeMatch<OfflineMatch> {
  const decoy = decoys[protocol.path]
  // An activation that is not ACTIVE takes no code and counts none. The code is compared with a decoy, so that the time does not reveal a right
  // guess.
  const known = activation?.state === 'ACTIVE' ? codeKeysOf(recordKeys, protocol, activation) : undefined
  const { keys, ctrData } = known ?? { keys: decoy.activationKeys, ctrData: decoy.openCtrData() }
  const isBiometryAllowed = otp.isBiometryAllowed && activation?.isBiometryEnabled !== false
  const found = protocol.verifyOfflineOtp(keys, ctrData, { ...otp, isBiometryAllowed }, settings.counterLookAhead)
  const isLacking = isKnowledgeAllowed === false && found.move?.factors === 'POSSESSION_KNOWLEDGE'
  return isLacking ? { move: undefined, isPossessionRight: true } : found
}

/**
 * Judges the result of a search. All combinations together are one attempt. A wrong code is a guess only if its first component is right (v3
 * §15.2).
 */
function judge(activation: ActivationRow, { move, isPossessionRight }: CodeMatch<OfflineMatch>): Judged {
  const isRight = move !== undefined
  const outcome = decideAuthentication(activation, { valid: isRight, isCounted: isRight || isPossessionRight })
  if (isRight && outcome.valid) return { isRight, move, outcome }
  const refusal = activation.state === 'ACTIVE' ? 'signature_does_not_match' : 'activation_invalid_state'
  return { isRight: false, refusal, isGuess: !isRight && isPossessionRight, outcome }
}
