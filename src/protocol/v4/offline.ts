// Makes the QR payload of an offline approval, and verifies the one-time password that a user types in (v4 §11).
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { CodeMatch, OfflineMatch, OfflineOtp, PersonalizedPayload } from '../protocol.ts'
import { composeOfflineHead, findOfflineMatch, listOfflineFactors } from '../wire/offline.ts'
import { computeComponents, selectFactorKeys, settle } from './authentication-code.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** The text of the QR code for one activation, with a MAC under KEY_MAC_PERSONALIZED_DATA (v4 §11.2). */
export function createPersonalizedPayload(
  payload: PersonalizedPayload,
  { keys }: { readonly keys: Pick<ActivationKeys, 'keyMacPersonalizedData'> },
): string {
  const head = composeOfflineHead(payload, '2')
  return `${head}${toBase64(keys.keyMacPersonalizedData().compute(utf8(head)))}`
}

/**
 * Verifies a one-time password: with possession and knowledge first, then with possession and biometry, if allowed. Each is tried with the current
 * and with the next key of the second factor (v4 §11.1).
 */
export const verifyOfflineOtp = (
  keys: ActivationKeys,
  ctrData: Uint8Array,
  request: OfflineOtp,
  lookAhead: number,
): CodeMatch<OfflineMatch> =>
  findOfflineMatch(request, ctrData, lookAhead, {
    candidates: listOfflineFactors(request).flatMap((factors) =>
      selectFactorKeys(keys, factors).map((factorKeys, used) => ({ factors, factorKeys, used })),
    ),
    compute: computeComponents,
    advance: advanceCounter,
    settle: ({ factors, used }, move) => settle(keys, factors, used, move),
  })
