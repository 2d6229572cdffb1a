// Composes the bytes that an authentication code covers: the request data (v3 §10.1, v4 §7.1), and the query string in the form that takes the place
// of a body (v3 §10.4, v4 §7.1).
import { toBase64 } from '../../lib/base64.ts'
import { utf8 } from '../../lib/bytes.ts'

interface RequestData {
  readonly method: string
  readonly resourceId: string
  readonly nonceBase64: string
  /** Raw body, decrypted body, or canonical query, as the endpoint's order says (v3 §5.4, §10.4). */
  readonly body: Uint8Array
}

/**
 * The bytes a code covers: request data, `&`, application secret (v3 §10.1, v4 §7.1). `nonce` is that of the authorization header,
 * `applicationSecret` Base64 text.
 */
export const composeSignedData = ({
  nonce,
  applicationSecret,
  ...request
}: Omit<RequestData, 'nonceBase64'> & { readonly nonce: Uint8Array; readonly applicationSecret: string }): Uint8Array =>
  utf8(`${composeRequestData({ ...request, nonceBase64: toBase64(nonce) })}&${applicationSecret}`)

/** METHOD & b64(resource id) & b64(nonce) & b64(body); empty parts stay (v3 §10.1, v4 §7.1). */
export const composeRequestData = (request: RequestData): string =>
  [request.method.toUpperCase(), toBase64(utf8(request.resourceId)), request.nonceBase64, toBase64(request.body)].join('&')

/**
 * The canonical forms that a code may cover, in the order in which they are tried. The published client signs the query as given, and its HTTP layer
 * then encodes every percent sign once more; its server decodes twice. So a query with doubly encoded characters has a second reading, with one layer
 * removed. Any other query has one reading.
 */
export function canonicalQueryReadings(rawQuery = ''): readonly Uint8Array[] {
  const once = rawQuery.replace(DOUBLY_ENCODED, '%')
  return once === rawQuery ? [canonicalizeQuery(rawQuery)] : [canonicalizeQuery(rawQuery), canonicalizeQuery(once)]
}

/** Canonical bytes of a raw query string (without the question mark); empty when there is nothing to sign. */
export function canonicalizeQuery(rawQuery = ''): Uint8Array {
  // Parts without "=" are dropped. The "&" in front keeps URLSearchParams from removing a question mark at the start.
  const parts = rawQuery.split('&').filter((part) => part.includes('='))
  const pairs = [...new URLSearchParams(`&${parts.join('&')}`)]
  pairs.sort(([keyA, valueA], [keyB, valueB]) => compareCodeUnits(keyA, keyB) || compareCodeUnits(valueA, valueB))
  return utf8(new URLSearchParams(pairs).toString())
}

const compareCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

// An encoded percent sign in front of two digits that would form an encoded byte with a plain one.
const DOUBLY_ENCODED = /%25(?=[0-9A-Fa-f]{2})/g
