// Offline signatures: the QR payload and the one-time password a user types in (v3 §15).
import type { KeyObject } from 'node:crypto'
import { ecdsaSign } from '../../crypto/ecdsa.ts'
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { OfflineMatch, OfflineOtp, PersonalizedPayload, SigningKeys } from '../protocol.ts'
import { composeOfflineHead, findOfflineMatch, listOfflineFactors } from '../wire/offline.ts'
import { computeComponents, selectFactorKeys } from './authentication-code.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** The payload for any activation of an application, signed with its master key (v3 §15.1). */
export const createOfflinePayload = (payload: PersonalizedPayload, keyMaster: KeyObject): string =>
  signPayload(composeOfflineHead(payload, '0'), keyMaster)

/** The payload for one activation, signed with KEY_SERVER_PRIVATE (v3 §15.1). */
export const createPersonalizedPayload = (
  payload: PersonalizedPayload,
  { openServerKeys }: { readonly openServerKeys: () => SigningKeys },
): string => signPayload(composeOfflineHead(payload, '1'), openServerKeys().ecdsa)

/** Possession and knowledge first, then possession and biometry where allowed; undefined when none matches (v3 §15.2). */
export function verifyOfflineOtp(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  request: OfflineOtp,
  lookAhead: number,
): OfflineMatch | undefined {
  const found = findOfflineMatch(request, ctrData, lookAhead, {
    candidates: listOfflineFactors(request).map((factors) => ({ factors, factorKeys: selectFactorKeys(keys, factors) })),
    compute: ({ factorKeys }, counter, signedData) => computeComponents(factorKeys, counter, signedData),
    advance: advanceCounter,
  })
  return found && { ...found.move, factors: found.candidate.factors, signedData: found.signedData }
}

const signPayload = (head: string, key: KeyObject): string => `${head}${toBase64(ecdsaSign(key, utf8(head)))}`
