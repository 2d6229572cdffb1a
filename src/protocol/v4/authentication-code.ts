// Authentication codes: what they cover, how they are computed and verified (v4 §7).
import { importKmacKey, type KmacKey } from '../../crypto/kmac.ts'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { CodeToVerify, CounterMove, Factors, SignedRequest } from '../protocol.ts'
import { type ReplaceableFactor, settleFactorKeys } from './factor-keys.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** The bytes a code covers: request data, `&`, application secret as text (v4 §7.1). */
export const composeSignedData = ({ applicationSecret, ...request }: SignedRequest): Uint8Array =>
  utf8(`${composeRequestData({ ...request, nonceBase64: toBase64(request.nonce) })}&${applicationSecret}`)

/** METHOD & b64(uriIdentifier) & b64(nonce) & b64(body); empty parts stay (v4 §7.1). */
export const composeRequestData = (request: {
  method: string
  resourceId: string
  nonceBase64: string
  body: Uint8Array
}): string =>
  [request.method.toUpperCase(), toBase64(utf8(request.resourceId)), request.nonceBase64, toBase64(request.body)].join('&')

/**
 * Tries `lookAhead` counter values, with each of them every candidate for the factor keys; undefined when none matches or the
 * code has the wrong form (v4 §7.4, §7.5).
 */
export function verifyAuthenticationCode(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  signedData: Uint8Array,
  { factors, code }: Pick<CodeToVerify, 'factors' | 'code'>,
  lookAhead: number,
): CounterMove | undefined {
  const expectedLength = (factors === 'POSSESSION' ? 1 : 2) * COMPONENT_LENGTH
  const given = parseBase64(code)
  const isWellFormed = given?.length === expectedLength
  // A code of the wrong form takes the same way as a wrong code, so that the time does not tell them apart.
  const candidate = isWellFormed ? given : new Uint8Array(expectedLength)
  return findMatch(keys, factors, ctrData, lookAhead, (factorKeys, counter) => {
    const expected = toOnlineCode(computeComponents(factorKeys, counter, signedData))
    return equalConstantTime(expected, candidate) && isWellFormed
  })
}

/** The first of `lookAhead` counter values that one of the candidates matches, as the move it causes (v4 §7.4, §7.5). */
export function findMatch(
  keys: ActivationKeys,
  factors: Factors,
  ctrData: Uint8Array,
  lookAhead: number,
  isMatch: (factorKeys: readonly KmacKey[], counter: Uint8Array) => boolean,
): CounterMove | undefined {
  const candidates = selectFactorKeys(keys, factors)
  let used = -1
  const move = findCounter(ctrData, lookAhead, (counter) => {
    used = candidates.findIndex((factorKeys) => isMatch(factorKeys, counter))
    return used >= 0
  })
  return move && settle(keys, factors, used, move)
}

/** The first of `lookAhead` counter values that `isMatch` accepts, as the move it causes (v4 §7.4). */
export function findCounter(
  ctrData: Uint8Array,
  lookAhead: number,
  isMatch: (counter: Uint8Array) => boolean,
): CounterMove | undefined {
  let counter = ctrData
  for (let i = 0; i < lookAhead; i += 1) {
    const next = advanceCounter(counter)
    if (isMatch(counter)) return { steps: i + 1, ctrData: next }
    counter = next
  }
  return undefined
}

/** Adds what the match settled about the replaced key of its second factor (v4 §7.5). */
export function settle(keys: ActivationKeys, factors: Factors, used: number, move: CounterMove): CounterMove {
  const factor = SECOND_FACTORS[factors]
  const activationSecret = factor && settleFactorKeys(keys.activationSecret, factor, used)
  return activationSecret ? { ...move, activationSecret } : move
}

/**
 * Candidates of a combination, the keys of each in the order of v4 §7.3: with the current second key, then with the next. None
 * for a combination that no endpoint allows.
 */
export function selectFactorKeys(keys: ActivationKeys, factors: Factors): readonly (readonly KmacKey[])[] {
  if (factors === 'POSSESSION') return [[keys.possession()]]
  const factor = SECOND_FACTORS[factors]
  return factor === undefined ? [] : keys[factor]().map((key) => [keys.possession(), key])
}

/** component_1 ... component_n, 32 bytes each, for a counter value (32 bytes) (v4 §7.3). */
export function computeComponents(
  factorKeys: readonly KmacKey[],
  counter: Uint8Array,
  signedData: Uint8Array,
): readonly Uint8Array[] {
  let chained = new Uint8Array(0)
  return factorKeys.map((key) => {
    // Every step takes in the counter and what the steps before it gave, so step i is where the chain of component i ends.
    chained = Uint8Array.from(key.compute(concat(counter, chained)))
    return importKmacKey(chained, 'PA4CODE').compute(signedData)
  })
}

/** Decimal groups of `digits` (4 to 8) digits joined by `-` (v4 §7.3). */
export const toDecimalCode = (components: readonly Uint8Array[], digits: number): string =>
  components.map((component) => toDecimal(component, digits)).join('-')

/** The components one after the other; Base64 of it is the text form (v4 §7.3). */
export const toOnlineCode = (components: readonly Uint8Array[]): Uint8Array => concat(...components)

/** Last 4 bytes, AND 0x7FFFFFFF, mod 10^digits, padded with zeros. Also the last step of a fingerprint (v4 §8.6). */
export const toDecimal = (bytes: Uint8Array, digits: number): string => {
  const tail = new DataView(bytes.buffer, bytes.byteOffset + bytes.byteLength - 4, 4)
  return String((tail.getUint32(0) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

const SECOND_FACTORS: Partial<Record<Factors, ReplaceableFactor>> = {
  POSSESSION_KNOWLEDGE: 'knowledge',
  POSSESSION_BIOMETRY: 'biometry',
}

const COMPONENT_LENGTH = 32
