// Handles the parts of offline approvals that need no keys: the text of a QR code, the data that a one-time password covers, and the search for its
// counter value (v3 §15, v4 §11).
import { concat, equalConstantTime, utf8 } from '../../lib/bytes.ts'
import type { CodeMatch, CounterMove, Factors, OfflineMatch, OfflineOtp, PersonalizedPayload } from '../protocol.ts'
import { findCounter } from './counter.ts'
import { toDecimalCode } from './decimal.ts'
import { composeRequestData } from './request-data.ts'

/** The signed part of a payload: its lines up to and including the key indicator (v3 §15.1, v4 §11.2). */
export const composeOfflineHead = ({ data, totp, nonceBase64 }: PersonalizedPayload, keyIndicator: string): string =>
  [data, ...(totp === undefined ? [] : [totp]), nonceBase64, keyIndicator].join('\n')

/**
 * The bytes that an offline one-time password covers, with one candidate of the proximity check. The literal `offline` takes the place of the
 * application secret (v3 §15.2, v4 §11.1).
 */
export function composeOfflineSignedData(
  { resourceId, body, nonceBase64 }: Pick<OfflineOtp, 'resourceId' | 'body' | 'nonceBase64'>,
  totp: string | undefined,
): Uint8Array {
  const covered = totp === undefined ? body : concat(body, utf8(`&${totp}`))
  const requestData = composeRequestData({ method: 'POST', resourceId, nonceBase64, body: covered })
  return utf8(`${requestData}&offline`)
}

/** The combinations of factors that may have made a one-time password, in the order in which they are tried. */
export const listOfflineFactors = ({ isBiometryAllowed }: OfflineOtp): readonly Factors[] =>
  isBiometryAllowed ? ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] : ['POSSESSION_KNOWLEDGE']

/** Factor keys that may have made a one-time password. */
interface Candidate<Key> {
  readonly factors: Factors
  readonly factorKeys: readonly Key[]
}

/** The functions with which a generation computes the components to compare. */
interface OfflineSearch<Key, One extends Candidate<Key>> {
  /** In the order in which they are tried. */
  readonly candidates: readonly One[]
  /** The components, 32 bytes each. */
  readonly compute: (factorKeys: readonly Key[], counter: Uint8Array, signedData: Uint8Array) => readonly Uint8Array[]
  readonly advance: (ctrData: Uint8Array) => Uint8Array
  /** The change of the activation when these keys matched; the move alone if absent. */
  readonly settle?: (used: One, move: CounterMove) => CounterMove
}

/**
 * Tries every candidate TOTP with every counter value of the look-ahead and every candidate for the keys. All tries together count as one attempt (v3
 * §15.2, v4 §11.1).
 */
export function findOfflineMatch<Key, One extends Candidate<Key>>(
  request: OfflineOtp,
  ctrData: Uint8Array,
  lookAhead: number,
  { candidates, compute, advance, settle = (_, move) => move }: OfflineSearch<Key, One>,
): CodeMatch<OfflineMatch> {
  const given = utf8(request.otp)
  const { componentLength } = request
  const isMade = (components: readonly Uint8Array[], part: Uint8Array): boolean =>
    equalConstantTime(utf8(toDecimalCode(components, componentLength)), part)
  let isPossessionRight = false
  for (const totp of request.totps ?? [undefined]) {
    const signedData = composeOfflineSignedData(request, totp)
    let used: One | undefined
    const found = findCounter(ctrData, lookAhead, advance, (counter) => {
      let isFirstRight = false
      used = candidates.find(({ factorKeys }) => {
        const components = compute(factorKeys, counter, signedData)
        if (isMade(components.slice(0, 1), given.subarray(0, componentLength))) isFirstRight = true
        return isMade(components, given)
      })
      if (used !== undefined) return 'RIGHT'
      return isFirstRight ? 'POSSESSION_ONLY' : 'WRONG'
    })
    if (found.isPossessionRight) isPossessionRight = true
    if (found.move && used) return { move: { ...settle(used, found.move), factors: used.factors }, isPossessionRight }
  }
  return { move: undefined, isPossessionRight }
}

/** The resource id of the approval of an operation. */
export const OFFLINE_RESOURCE_ID = '/operation/authorize/offline'

/**
 * Parses a one-time password that a user typed, as 16 digits, 8-8, or 4-4-4-4, into two groups of eight digits; undefined for any other text (v3
 * §15.2).
 */
export function parseOfflineOtp(text: string): string | undefined {
  if (!OTP_FORMS.test(text)) return undefined
  const digits = text.replaceAll('-', '')
  return `${digits.slice(0, 8)}-${digits.slice(8)}`
}

const OTP_FORMS = /^(\d{16}|\d{8}-\d{8}|\d{4}-\d{4}-\d{4}-\d{4})$/
