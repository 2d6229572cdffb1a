// Computes and verifies authentication codes, which the wire of v3 calls "signatures" (v3 §10.1 to §10.3).
import { hmac } from '../../crypto/hash.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { canonicalQueryReadings } from '../wire/request-data.ts'
import { findCounter } from '../wire/counter.ts'
import { toDecimalCode } from '../wire/decimal.ts'
import type { CodeMatch, CodeToVerify, CoveredRequest, Factors } from '../protocol.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'
import { capabilitiesOf } from './versions.ts'

/** The byte strings that a code may cover: for a GET request the readings of its query, else the body (v3 §10.1, §10.4). */
export const coveredBodies = ({ method, body, query }: CoveredRequest): readonly Uint8Array[] =>
  method === 'GET' ? canonicalQueryReadings(query) : [body]

/** Compares a code with `lookAhead` counter values. A code of the wrong form matches none, not even in part (v3 §9.1, §10.3, §10.5). */
export function verifyAuthenticationCode(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  signedData: Uint8Array,
  { version, factors, code }: CodeToVerify,
  lookAhead: number,
): CodeMatch {
  const factorKeys = selectFactorKeys(keys, factors)
  const isDecimal = capabilitiesOf(version)?.decimalCodes ?? false
  const given = isDecimal ? splitDecimal(code) : splitBinary(code)
  const isWellFormed = given?.length === factorKeys.length
  // A code of the wrong form takes the same path as a wrong code, so that the time does not reveal the difference.
  const parts = isWellFormed ? given : factorKeys.map(() => new Uint8Array(isDecimal ? ONLINE_DIGITS : BASE64_PART_LENGTH))
  const isComponent = (counterMacs: readonly Uint8Array[], part: Uint8Array, i: number): boolean => {
    const component = [computeComponent(counterMacs, signedData, i)]
    const expected = isDecimal ? utf8(toDecimalCode(component, ONLINE_DIGITS)) : toBinaryCode(component)
    return equalConstantTime(expected, part) && isWellFormed
  }
  const [firstKey, ...otherKeys] = factorKeys
  const [firstPart, ...otherParts] = parts
  if (firstKey === undefined || firstPart === undefined) throw new TypeError('a combination of no factors')
  return findCounter(ctrData, lookAhead, advanceCounter, (counter) => {
    // As in 4.0, the other components are computed only after a right first one, which halves the work that strangers can cause. The time
    // reveals only whether the first component is right, which the answer to a code of possession alone reveals, too.
    const first = hmac(firstKey, counter)
    if (!isComponent([first], firstPart, 0)) return 'WRONG'
    const counterMacs = [first, ...otherKeys.map((key) => hmac(key, counter))]
    return otherParts.every((part, i) => isComponent(counterMacs, part, i + 1)) ? 'RIGHT' : 'POSSESSION_ONLY'
  })
}

/** The factor keys of a combination, in the order of v3 §10.2. */
export const selectFactorKeys = (keys: ActivationKeys, factors: Factors): readonly Uint8Array[] =>
  FACTOR_KEYS[factors].map((name) => keys[name])

/** The components s_0 ... s_n of a code for a counter value of 16 bytes; each has 32 bytes (v3 §10.3). */
export function computeComponents(
  factorKeys: readonly Uint8Array[],
  counter: Uint8Array,
  signedData: Uint8Array,
): readonly Uint8Array[] {
  const counterMacs = factorKeys.map((key) => hmac(key, counter))
  return counterMacs.map((_, i) => computeComponent(counterMacs, signedData, i))
}

/** The component s_i, from the MACs of the counter under the first i + 1 factor keys. */
function computeComponent(counterMacs: readonly Uint8Array[], signedData: Uint8Array, i: number): Uint8Array {
  let derived = counterMacs[i] as Uint8Array
  for (const inner of counterMacs.slice(1, i + 1)) derived = hmac(inner, derived)
  return hmac(derived, signedData)
}

/** The binary code: the last 16 bytes of each component. Its Base64 is the code as sent (v3 §10.3). */
export const toBinaryCode = (components: readonly Uint8Array[]): Uint8Array =>
  concat(...components.map((component) => component.subarray(-BASE64_PART_LENGTH)))

/** Splits a decimal code into its components; undefined unless each has eight characters. */
function splitDecimal(code: string): readonly Uint8Array[] | undefined {
  const parts = code.split('-').map(utf8)
  return parts.every(({ length }) => length === ONLINE_DIGITS) ? parts : undefined
}

/** Splits a code in Base64 into its components; undefined for other text, and unless each has 16 bytes. */
function splitBinary(code: string): readonly Uint8Array[] | undefined {
  const bytes = parseBase64(code)
  if (bytes === undefined || bytes.length % BASE64_PART_LENGTH !== 0) return undefined
  const parts = []
  for (let at = 0; at < bytes.length; at += BASE64_PART_LENGTH) parts.push(bytes.subarray(at, at + BASE64_PART_LENGTH))
  return parts
}

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
