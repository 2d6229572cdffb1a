// Offline signatures: the QR payload and the one-time password a user types in (v3 §15).
import type { KeyObject } from 'node:crypto'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { totp, totpStep } from '../../crypto/totp.ts'
import { toBase64 } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { ActivationKeys, CounterMove, Factors } from '../protocol.ts'
import { composeBaseString, computeComponents, findCounter, selectFactorKeys, toDecimalCode } from './authentication-code.ts'

/** Which key signs a payload: the activation's server key, or the application's master key (v3 §15.1). */
export type OfflineSigner = 'PERSONALIZED' | 'NON_PERSONALIZED'

/** What a QR payload shows and carries (v3 §15.1). */
export interface OfflinePayload {
  /** Lines of the operation, joined by line feeds. */
  readonly data: string
  /** Only with proximity check. */
  readonly totp?: string
  /** Base64 of 16 bytes. */
  readonly nonceBase64: string
  readonly signer: OfflineSigner
}

/** What an offline one-time password covers, and how it may have been made (v3 §15.2). */
export interface OfflineOtp {
  /** Groups of decimal digits joined by `-`, as parseOfflineOtp gives them. */
  readonly otp: string
  readonly operationId: string
  readonly operationData: string
  /** Base64 text as in the payload. */
  readonly nonceBase64: string
  /** Digits of a component, 4 to 8. */
  readonly componentLength: number
  readonly isBiometryAllowed: boolean
  /** Candidates of the proximity check; undefined without it. An empty list matches nothing. */
  readonly totps: readonly string[] | undefined
}

/** Where an offline one-time password matched. */
export interface OfflineMatch extends CounterMove {
  readonly factors: Factors
  readonly signedData: Uint8Array
}

/** How the one-time passwords of a proximity check are made (v3 §15.3). */
export interface ProximityCheck {
  /** 16 random bytes. */
  readonly seed: Uint8Array
  readonly stepSeconds: number
  /** At least 6. */
  readonly digits: number
}

/** The text of the QR code: lines joined by line feeds, the last one key indicator and signature (v3 §15.1). */
export function createOfflinePayload(payload: OfflinePayload, signingKey: KeyObject): string {
  const signedText = composeOfflineSignedText(payload)
  return `${signedText}${toBase64(ecdsaSign(signingKey, utf8(signedText)))}`
}

/** What the signature of a payload covers: everything up to and including the key indicator (v3 §15.1). */
export const composeOfflineSignedText = ({ data, totp: password, nonceBase64, signer }: OfflinePayload): string =>
  [data, ...(password === undefined ? [] : [password]), nonceBase64, KEY_INDICATORS[signer]].join('\n')

/** Two groups of eight digits from what a user may type: 16 digits, 8-8, or 4-4-4-4; undefined for anything else (v3 §15.2). */
export function parseOfflineOtp(text: string): string | undefined {
  if (!OTP_FORMS.test(text)) return undefined
  const digits = text.replaceAll('-', '')
  return `${digits.slice(0, 8)}-${digits.slice(8)}`
}

/**
 * Tries every candidate TOTP with every counter value of the look-ahead, possession and knowledge first, then possession
 * and biometry where allowed; undefined when none matches. However many are tried, it is one attempt (v3 §15.2).
 */
export function verifyOfflineOtp(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  request: OfflineOtp,
  lookAhead: number,
): OfflineMatch | undefined {
  const given = utf8(request.otp)
  const combinations: readonly Factors[] = request.isBiometryAllowed
    ? ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']
    : ['POSSESSION_KNOWLEDGE']
  for (const candidate of request.totps ?? [undefined]) {
    const signedData = composeOfflineSignedData(request, candidate)
    let factors: Factors | undefined
    const move = findCounter(ctrData, lookAhead, (counter) => {
      factors = combinations.find((combination) => {
        const components = computeComponents(selectFactorKeys(keys, combination), counter, signedData)
        return equalConstantTime(utf8(toDecimalCode(components, request.componentLength)), given)
      })
      return factors !== undefined
    })
    if (move && factors) return { ...move, factors, signedData }
  }
  return undefined
}

/** What an offline one-time password covers; the literal `offline` takes the place of the application secret (v3 §15.2). */
export function composeOfflineSignedData(
  { operationId, operationData, nonceBase64 }: Pick<OfflineOtp, 'operationId' | 'operationData' | 'nonceBase64'>,
  candidate: string | undefined,
): Uint8Array {
  const body = utf8([operationId, operationData, ...(candidate === undefined ? [] : [candidate])].join('&'))
  const base = composeBaseString({ method: 'POST', resourceId: OFFLINE_RESOURCE_ID, nonceBase64, body })
  return utf8(`${base}&offline`)
}

/** The TOTP of a time (seconds), for the payload (v3 §15.3). */
export const computeOfflineTotp = ({ seed, stepSeconds, digits }: ProximityCheck, timeSeconds: number): string =>
  totp(seed, totpStep(timeSeconds, stepSeconds), digits)

/** TOTPs of the current step and `stepCount` earlier ones, newest first (v3 §15.3). */
export function computeTotpCandidates(check: ProximityCheck, timeSeconds: number, stepCount: number): readonly string[] {
  const current = totpStep(timeSeconds, check.stepSeconds)
  const steps = Array.from({ length: stepCount + 1 }, (_, back) => current - back)
  return steps.filter((step) => step >= 0).map((step) => totp(check.seed, step, check.digits))
}

const KEY_INDICATORS = { PERSONALIZED: '1', NON_PERSONALIZED: '0' } as const satisfies Record<OfflineSigner, string>
const OFFLINE_RESOURCE_ID = '/operation/authorize/offline'
const OTP_FORMS = /^(\d{16}|\d{8}-\d{8}|\d{4}-\d{4}-\d{4}-\d{4})$/
