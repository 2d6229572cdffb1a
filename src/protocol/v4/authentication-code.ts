// Authentication codes: the data that they cover, their computation and verification (v4 §7).
import { createKmacOnce, type KmacKey } from '../../crypto/kmac.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { concat, equalConstantTime } from '../../lib/bytes.ts'
import { canonicalQueryReadings } from '../wire/request-data.ts'
import { findCounter } from '../wire/counter.ts'
import type { CodeMatch, CodeToVerify, CounterMove, CoveredRequest, Factors } from '../protocol.ts'
import { type ReplaceableFactor, settleFactorKeys } from './factor-keys.ts'
import { type ActivationKeys, advanceCounter } from './key-schedule.ts'

/** What a code may cover: the body where there is one, else the readings of the query (v4 §7.1). */
export const coveredBodies = ({ body, query }: CoveredRequest): readonly Uint8Array[] =>
  body.length > 0 ? [body] : canonicalQueryReadings(query)

/**
 * Tries `lookAhead` counter values, with each of them every candidate for the factor keys; a code of the wrong form matches none, not
 * even in part (v4 §7.4, §7.5).
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
  // A code of the wrong form takes the same way as a wrong code, so that the time does not tell them apart.
  const candidate = isWellFormed ? given : new Uint8Array(expectedLength)
  const isComponent = (chained: Uint8Array, i: number): boolean => {
    const part = candidate.subarray(i * COMPONENT_LENGTH, (i + 1) * COMPONENT_LENGTH)
    return equalConstantTime(computeComponent(chained, signedData), part) && isWellFormed
  }
  let used = 0
  const { move, isPossessionRight } = findCounter(ctrData, lookAhead, advanceCounter, (counter) => {
    const possession = chainKey(keys.possession(), counter)
    // The second component is computed only behind a right first one, which halves the work that strangers can cause. The time
    // tells no more than the answer to a code of possession alone does: it is this very component.
    if (!isComponent(possession, 0)) return 'WRONG'
    if (factors === 'POSSESSION') return 'RIGHT'
    used = seconds.findIndex((key) => isComponent(chainKey(key, counter, possession), 1))
    return used >= 0 ? 'RIGHT' : 'POSSESSION_ONLY'
  })
  return { move: move && settle(keys, factors, used, move), isPossessionRight }
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
export const selectFactorKeys = (keys: ActivationKeys, factors: Factors): readonly (readonly KmacKey[])[] =>
  factors === 'POSSESSION'
    ? [[keys.possession()]]
    : (selectSecondKeys(keys, factors) ?? []).map((key) => [keys.possession(), key])

/** component_1 ... component_n, 32 bytes each, for a counter value (32 bytes) (v4 §7.3). */
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
 * One step of the chain. Every step takes in the counter and what the steps before it gave, so step i is where the chain of
 * component i ends (v4 §7.3).
 */
const chainKey = (key: KmacKey, counter: Uint8Array, before?: Uint8Array): Uint8Array =>
  key.compute(before ? concat(counter, before) : counter)

/** A component, under the key that its chain ended with: as importCodeKey has it, but that key makes one MAC. */
const computeComponent = createKmacOnce('PA4CODE')

/** Candidates for the key of the second factor; none for possession alone, undefined for what no endpoint allows. */
function selectSecondKeys(keys: ActivationKeys, factors: Factors): readonly KmacKey[] | undefined {
  const factor = SECOND_FACTORS[factors]
  if (factor) return keys[factor]()
  return factors === 'POSSESSION' ? [] : undefined
}

/** The components one after the other; Base64 of it is the text form (v4 §7.3). */
export const toBinaryCode = (components: readonly Uint8Array[]): Uint8Array => concat(...components)

const SECOND_FACTORS: Partial<Record<Factors, ReplaceableFactor>> = {
  POSSESSION_KNOWLEDGE: 'knowledge',
  POSSESSION_BIOMETRY: 'biometry',
}

const COMPONENT_LENGTH = 32
