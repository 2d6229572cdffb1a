// Offline signatures: the QR payload and the one-time password a user types in (v3 §15).
import type { KeyObject } from 'node:crypto'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { toBase64 } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { findCounter } from '../wire/counter.ts'
import { toDecimalCode } from '../wire/decimal.ts'
import { composeOfflineSignedData } from '../wire/request-data.ts'
import type { Factors, OfflineMatch, OfflineOtp, PersonalizedPayload, SigningKeys } from '../protocol.ts'
import { computeComponents, selectFactorKeys } from './authentication-code.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** Which key signs a payload: the activation's server key, or the application's master key (v3 §15.1). */
export type OfflineSigner = 'PERSONALIZED' | 'NON_PERSONALIZED'

/** What a QR payload shows and carries (v3 §15.1). */
export interface OfflinePayload extends PersonalizedPayload {
  readonly signer: OfflineSigner
}

/** The text of the QR code: lines joined by line feeds, the last one key indicator and signature (v3 §15.1). */
export function createOfflinePayload(payload: OfflinePayload, signingKey: KeyObject): string {
  const signedText = composeOfflineSignedText(payload)
  return `${signedText}${toBase64(ecdsaSign(signingKey, utf8(signedText)))}`
}

/** The payload for one activation, signed with KEY_SERVER_PRIVATE (v3 §15.1). */
export const createPersonalizedPayload = (
  payload: PersonalizedPayload,
  { openServerKeys }: { readonly openServerKeys: () => SigningKeys },
): string => createOfflinePayload({ ...payload, signer: 'PERSONALIZED' }, openServerKeys().ecdsa)

/** What the signature of a payload covers: everything up to and including the key indicator (v3 §15.1). */
export const composeOfflineSignedText = ({ data, totp: password, nonceBase64, signer }: OfflinePayload): string =>
  [data, ...(password === undefined ? [] : [password]), nonceBase64, KEY_INDICATORS[signer]].join('\n')

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
    const move = findCounter(ctrData, lookAhead, advanceCounter, (counter) => {
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

const KEY_INDICATORS = { PERSONALIZED: '1', NON_PERSONALIZED: '0' } as const satisfies Record<OfflineSigner, string>
