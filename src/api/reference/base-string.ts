// The text that a library of the bank composes of a request before it asks about its code (v3 §10.1, v4 §7.1).
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { fromUtf8 } from '../../lib/bytes.ts'
import { composeRequestData } from '../../protocol/wire/request-data.ts'

/** What a code covers beside the secret. */
export interface Covered {
  readonly method: string
  readonly resourceId: string
  /** Base64 text. */
  readonly nonce: string
  readonly body: Uint8Array
}

/** What a base string says; undefined for one that pawl would not write so. */
export function readCovered(data: string): Covered | undefined {
  const [method = '', resource = '', nonce = '', body = '', ...more] = data.split('&')
  const bytes = { resource: parseBase64(resource), body: parseBase64(body) }
  if (more.length > 0 || !METHOD.test(method) || bytes.resource === undefined || bytes.body === undefined) return undefined
  const resourceId = toText(bytes.resource)
  if (resourceId === undefined || resourceId.length > RESOURCE_ID_LENGTH_MAX || CONTROL.test(resourceId)) return undefined
  const nonceBase64 = toBase64(parseBase64(nonce) ?? NO_BYTES)
  const isSame = composeRequestData({ method, resourceId, nonceBase64, body: bytes.body }) === data
  return isSame ? { method, resourceId, nonce, body: bytes.body } : undefined
}

function toText(bytes: Uint8Array): string | undefined {
  try {
    return fromUtf8(bytes)
  } catch {
    return undefined
  }
}

const METHOD = /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)$/
// oxlint-disable-next-line no-control-regex -- those that would be lines of their own in the audit log
const CONTROL = /[\u0000-\u001F\u007F]/
const RESOURCE_ID_LENGTH_MAX = 1024
const NO_BYTES = new Uint8Array(0)
/** The longest body that a setting may allow, as Base64, with the rest. */
export const DATA_LENGTH_MAX = 360_000
