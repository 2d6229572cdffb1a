// Offline codes: the QR payload and the one-time password a user types in (v4 §11).
import type { KeyObject } from 'node:crypto'
import { ecdsaSignP384 } from '../../crypto/ecdsa.ts'
import { toBase64 } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { findCounter } from '../wire/counter.ts'
import { toDecimalCode } from '../wire/decimal.ts'
import { composeOfflineSignedData } from '../wire/request-data.ts'
import type { Factors, OfflineMatch, OfflineOtp, PersonalizedPayload } from '../protocol.ts'
import { computeComponents, selectFactorKeys, settle } from './authentication-code.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** Which key vouches for a payload: one of the activation, or the application's master key (v4 §11.2, §11.3). */
export type OfflineSigner = 'PERSONALIZED' | 'NON_PERSONALIZED'

/** What a QR payload shows and carries (v4 §11.2, §11.3). */
export interface OfflinePayload extends PersonalizedPayload {
  readonly signer: OfflineSigner
}

/** The payload for any activation of an application, signed with KEY_MASTER_ECDSA_P384 (v4 §11.3). */
export async function createOfflinePayload(payload: PersonalizedPayload, keyMasterEcdsaP384: KeyObject): Promise<string> {
  const head = composeOfflineSignedText({ ...payload, signer: 'NON_PERSONALIZED' })
  return `${head}${toBase64(await ecdsaSignP384(keyMasterEcdsaP384, utf8(head)))}`
}

/** The payload for one activation, with a MAC under KEY_MAC_PERSONALIZED_DATA (v4 §11.2). */
export function createPersonalizedPayload(
  payload: PersonalizedPayload,
  { keys }: { readonly keys: Pick<ActivationKeys, 'keyMacPersonalizedData'> },
): string {
  const head = composeOfflineSignedText({ ...payload, signer: 'PERSONALIZED' })
  return `${head}${toBase64(keys.keyMacPersonalizedData().compute(utf8(head)))}`
}

/** What is signed of a payload: everything up to and including the key indicator (v4 §11.2). */
export const composeOfflineSignedText = ({ data, totp: password, nonceBase64, signer }: OfflinePayload): string =>
  [data, ...(password === undefined ? [] : [password]), nonceBase64, KEY_INDICATORS[signer]].join('\n')

/**
 * Tries every candidate TOTP with every counter value of the look-ahead, possession and knowledge first, then possession
 * and biometry where allowed; undefined when none matches. However many are tried, it is one attempt (v4 §11.1).
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
  const candidates = combinations.flatMap((factors) =>
    selectFactorKeys(keys, factors).map((factorKeys, used) => ({ factors, factorKeys, used })),
  )
  for (const totp of request.totps ?? [undefined]) {
    const signedData = composeOfflineSignedData(request, totp)
    let matched: (typeof candidates)[number] | undefined
    const move = findCounter(ctrData, lookAhead, advanceCounter, (counter) => {
      matched = candidates.find(({ factorKeys }) => {
        const components = computeComponents(factorKeys, counter, signedData)
        return equalConstantTime(utf8(toDecimalCode(components, request.componentLength)), given)
      })
      return matched !== undefined
    })
    if (move && matched) {
      const { factors, used } = matched
      return { ...settle(keys, factors, used, move), factors, signedData }
    }
  }
  return undefined
}

const KEY_INDICATORS = { PERSONALIZED: '2', NON_PERSONALIZED: '0' } as const satisfies Record<OfflineSigner, string>
