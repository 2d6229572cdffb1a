// Makes the QR payload of an offline signature, and verifies the one-time password that a user types in (v3 §15).
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { CodeMatch, OfflineMatch, OfflineOtp, PersonalizedPayload, SigningKeys } from '../protocol.ts'
import { composeOfflineHead, findOfflineMatch, listOfflineFactors } from '../wire/offline.ts'
import { computeComponents, selectFactorKeys } from './authentication-code.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** The text of the QR code for one activation, signed with KEY_SERVER_PRIVATE (v3 §15.1); undefined without that key. */
export function createPersonalizedPayload(
  payload: PersonalizedPayload,
  { openServerKeys }: { readonly openServerKeys: () => SigningKeys | undefined },
): string | undefined {
  const head = composeOfflineHead(payload, '1')
  const keys = openServerKeys()
  return keys && `${head}${toBase64(ecdsaSign(keys.ecdsa, utf8(head)))}`
}

/** Verifies a one-time password: with possession and knowledge first, then with possession and biometry, if allowed (v3 §15.2). */
export const verifyOfflineOtp = (
  keys: ActivationKeys,
  ctrData: Uint8Array,
  request: OfflineOtp,
  lookAhead: number,
): CodeMatch<OfflineMatch> =>
  findOfflineMatch(request, ctrData, lookAhead, {
    candidates: listOfflineFactors(request).map((factors) => ({ factors, factorKeys: selectFactorKeys(keys, factors) })),
    compute: computeComponents,
    advance: advanceCounter,
  })
