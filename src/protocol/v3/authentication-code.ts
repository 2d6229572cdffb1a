// Authentication codes, on v3's wire "signatures": what they cover, how they are computed and verified (v3 §10.1 to §10.3).
import { hmac } from '../../crypto/hmac.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { canonicalQueryReadings } from '../wire/canonical-query.ts'
import { findCounter } from '../wire/counter.ts'
import { toDecimalCode } from '../wire/decimal.ts'
import type { CodeToVerify, CounterMove, CoveredRequest, Factors } from '../protocol.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'
import { capabilitiesOf } from './versions.ts'

/** What a code may cover: of a GET request the readings of its query, of any other its body (v3 §10.1, §10.4). */
export const coveredBodies = ({ method, body, query }: CoveredRequest): readonly Uint8Array[] =>
  method === 'GET' ? canonicalQueryReadings(query) : [body]

/** Tries `lookAhead` counter values; undefined when none matches or the code has the wrong form (v3 §9.1, §10.3). */
export function verifyAuthenticationCode(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  signedData: Uint8Array,
  { version, factors, code }: CodeToVerify,
  lookAhead: number,
): CounterMove | undefined {
  const factorKeys = selectFactorKeys(keys, factors)
  const isDecimal = capabilitiesOf(version)?.decimalCodes ?? false
  const expectedLength = isDecimal ? factorKeys.length * (ONLINE_DIGITS + 1) - 1 : factorKeys.length * BASE64_PART_LENGTH
  const given = isDecimal ? utf8(code) : parseBase64(code)
  const isWellFormed = given?.length === expectedLength
  // A code of the wrong form takes the same way as a wrong code, so that the time does not tell them apart.
  const candidate = isWellFormed ? given : new Uint8Array(expectedLength)
  const compute = (counter: Uint8Array): Uint8Array => {
    const components = computeComponents(factorKeys, counter, signedData)
    return isDecimal ? utf8(toDecimalCode(components, ONLINE_DIGITS)) : toBinaryCode(components)
  }
  return findCounter(
    ctrData,
    lookAhead,
    advanceCounter,
    (counter) => equalConstantTime(compute(counter), candidate) && isWellFormed,
  )
}

/** Keys of a combination in the order of v3 §10.2. */
export const selectFactorKeys = (keys: ActivationKeys, factors: Factors): readonly Uint8Array[] =>
  FACTOR_KEYS[factors].map((name) => keys[name])

/** s_0 ... s_n, 32 bytes each, for a counter value (16 bytes) (v3 §10.3). */
export function computeComponents(
  factorKeys: readonly Uint8Array[],
  counter: Uint8Array,
  signedData: Uint8Array,
): readonly Uint8Array[] {
  const counterMacs = factorKeys.map((key) => hmac(key, counter))
  return counterMacs.map((own, i) => {
    let derived = own
    for (const inner of counterMacs.slice(1, i + 1)) derived = hmac(inner, derived)
    return hmac(derived, signedData)
  })
}

/** The last 16 bytes of each component; Base64 of it is the text form (v3 §10.3). */
export const toBinaryCode = (components: readonly Uint8Array[]): Uint8Array =>
  concat(...components.map((component) => component.subarray(-BASE64_PART_LENGTH)))

const FACTOR_KEYS = {
  POSSESSION: ['possession'],
  KNOWLEDGE: ['knowledge'],
  BIOMETRY: ['biometry'],
  POSSESSION_KNOWLEDGE: ['possession', 'knowledge'],
  POSSESSION_BIOMETRY: ['possession', 'biometry'],
  POSSESSION_KNOWLEDGE_BIOMETRY: ['possession', 'knowledge', 'biometry'],
} as const satisfies Record<Factors, readonly (keyof ActivationKeys)[]>

const ONLINE_DIGITS = 8
const BASE64_PART_LENGTH = 16
