// Computes and verifies authentication codes, and composes the data that they cover (v4 §7).
import { createKmacOnce, type KmacKey } from '../../crypto/kmac.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime } from '../../lib/bytes.ts'
import { canonicalQueryReadings } from '../wire/request-data.ts'
import { findCounter } from '../wire/counter.ts'
import type { CodeMatch, CodeToVerify, CounterMove, CoveredRequest, Factors } from '../protocol.ts'
import { type ReplaceableFactor, settleFactorKeys } from './factor-keys.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** The byte strings that a code may cover: the body if there is one, else the readings of the query (v4 §7.1). */
export const coveredBodies = ({ body, query }: CoveredRequest): readonly Uint8Array[] =>
  body.length > 0 ? [body] : canonicalQueryReadings(query)

/**
 * Compares a code with `lookAhead` counter values, for each of them with every candidate for the factor keys. A code of the wrong form matches
 * none, not even in part (v4 §7.4, §7.5).
 */
export function verifyAuthenticationCode(
  keys: ActivationKeys,
  ctrData: Uint8Array,
  signedData: Uint8Array,
  { factors, code }: Pick<CodeToVerify, 'factors' | 'code'>,
  lookAhead: number,
): CodeMatch {
  const seconds = selectSecondKeys(keys, factors)
  if (seconds === undefined) return { move: undefined, isPossessionRight: false }
  const expectedLength = (factors === 'POSSESSION' ? 1 : 2) * COMPONENT_LENGTH
  const given = parseBase64(code)
  const isWellFormed = given?.length === expectedLength
  // A code of the wrong form takes the same path as a wrong code, so that the time does not reveal the difference.
  const candidate = isWellFormed ? given : new Uint8Array(expectedLength)
  const isComponent = (chained: Uint8Array, i: number): boolean => {
    const part = candidate.subarray(i * COMPONENT_LENGTH, (i + 1) * COMPONENT_LENGTH)
    return equalConstantTime(computeComponent(chained, signedData), part) && isWellFormed
  }
  let used = 0
  const { move, isPossessionRight } = findCounter(ctrData, lookAhead, advanceCounter, (counter) => {
    const possession = chainKey(keys.possession(), counter)
    // The second component is computed only after a right first one, which halves the work that strangers can cause. The time reveals only
    // whether the first component is right, which the answer to a code of possession alone reveals, too.
    if (!isComponent(possession, 0)) return 'WRONG'
    if (factors === 'POSSESSION') return 'RIGHT'
    used = seconds.findIndex((key) => isComponent(chainKey(key, counter, possession), 1))
    return used >= 0 ? 'RIGHT' : 'POSSESSION_ONLY'
  })
  return { move: move && settle(keys, factors, used, move), isPossessionRight }
}

/** Adds the new stored secret if the match has shown which key of the second factor the phone has (v4 §7.5). */
export function settle(keys: ActivationKeys, factors: Factors, used: number, move: CounterMove): CounterMove {
  const factor = SECOND_FACTORS[factors]
  const activationSecret = factor && settleFactorKeys(keys.activationSecret, factor, used)
  return activationSecret ? { ...move, activationSecret } : move
}

/**
 * The candidates for the factor keys of a combination, in the order of v4 §7.3: first with the current key of the second factor, then with the next.
 * Empty for a combination that no endpoint allows.
 */
export const selectFactorKeys = (keys: ActivationKeys, factors: Factors): readonly (readonly KmacKey[])[] =>
  factors === 'POSSESSION'
    ? [[keys.possession()]]
    : (selectSecondKeys(keys, factors) ?? []).map((key) => [keys.possession(), key])

/** The components component_1 ... component_n of a code for a counter value of 32 bytes; each has 32 bytes (v4 §7.3). */
export function computeComponents(
  factorKeys: readonly KmacKey[],
  counter: Uint8Array,
  signedData: Uint8Array,
): readonly Uint8Array[] {
  let chained: Uint8Array | undefined
  return factorKeys.map((key) => {
    chained = chainKey(key, counter, chained)
    return computeComponent(chained, signedData)
  })
}

/**
 * One step of the chain. Each step takes the counter and the result of the step before, so the chain of component i ends with step i (v4 §7.3).
 */
const chainKey = (key: KmacKey, counter: Uint8Array, before?: Uint8Array): Uint8Array =>
  key.compute(before ? concat(counter, before) : counter)

/** A component, under the key at the end of its chain. The same KMAC as in importCodeKey, for a key that computes only one MAC. */
const computeComponent = createKmacOnce('PA4CODE')

/** The candidates for the key of the second factor. Empty for possession alone, undefined for a combination that no endpoint allows. */
function selectSecondKeys(keys: ActivationKeys, factors: Factors): readonly KmacKey[] | undefined {
  const factor = SECOND_FACTORS[factors]
  if (factor) return keys[factor]()
  return factors === 'POSSESSION' ? [] : undefined
}

/** The binary code: the components one after the other. Its Base64 is the code as sent (v4 §7.3). */
export const toBinaryCode = (components: readonly Uint8Array[]): Uint8Array => concat(...components)

const SECOND_FACTORS: Partial<Record<Factors, ReplaceableFactor>> = {
  POSSESSION_KNOWLEDGE: 'knowledge',
  POSSESSION_BIOMETRY: 'biometry',
}

const COMPONENT_LENGTH = 32
