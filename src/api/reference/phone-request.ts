// Reads the request of a phone as the reference's library describes it, and composes the members of an answer about the activation. The library takes
// the header apart and composes the base string (v3 §10.1, v4 §7.1). pawl composes the header again, so that one parser reads all headers.
import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import { parseBase64, toBase64 } from '../../lib/base64.ts'
import { parseUtf8 } from '../../lib/bytes.ts'
import { composeRequestData } from '../../protocol/wire/request-data.ts'
import { State } from '../cloud/fields.ts'
import type { OwnAnswer } from '../door/members.ts'
import { Names } from './members.ts'

/** Fits the longest body that a setting may allow, in Base64, and the rest of the base string. */
export const DATA_LENGTH_MAX = 360_000

/** The data that a code covers, without the application secret. */
export interface Covered {
  readonly method: string
  readonly resourceId: string
  /** Base64 text. */
  readonly nonce: string
  readonly body: Uint8Array
}

/** Parses a base string. Undefined for one that pawl would write differently. */
export function readCovered(data: string): Covered | undefined {
  const [method = '', resource = '', nonce = '', body = '', ...more] = data.split('&')
  const bytes = { resource: parseBase64(resource), body: parseBase64(body) }
  if (more.length > 0 || !METHOD.test(method) || bytes.resource === undefined || bytes.body === undefined) return undefined
  const resourceId = parseUtf8(bytes.resource)
  if (resourceId === undefined || resourceId.length > RESOURCE_ID_LENGTH_MAX || CONTROL.test(resourceId)) return undefined
  const nonceBase64 = toBase64(parseBase64(nonce) ?? NO_BYTES)
  const isSame = composeRequestData({ method, resourceId, nonceBase64, body: bytes.body }) === data
  return isSame ? { method, resourceId, nonce, body: bytes.body } : undefined
}

/** Composes a header of these pairs. Undefined if a value is missing, or has a character that a header value cannot contain. */
export function composeHeader(pairs: Readonly<Record<string, string | undefined>>): string | undefined {
  const values = Object.entries(pairs)
  if (values.some(([, value]) => value === undefined || !VALUE.test(value))) return undefined
  return `PowerAuth ${values.map(([name, value]) => `${name}="${value}"`).join(', ')}`
}

/** The schema of a verdict. `isValid` is the name of its first member. `more` has the members that are not about the activation. */
export const Verdict = (isValid: string, activationId: TProperties[string], more: TProperties): TObject =>
  Type.Object({
    [isValid]: Type.Boolean(),
    activationId,
    activationStatus: Type.Optional(State),
    blockedReason: Type.Optional(Type.String()),
    userId: Type.Optional(Type.String()),
    applicationId: Type.Optional(Type.String()),
    ...more,
    applicationRoles: Names,
    activationFlags: Names,
  })

/** The members of a verdict about the activation. An unknown activation is shown as removed, as the reference does. */
export function told(
  { state, blockReason, userId, flags, applicationRoles, reason }: OwnAnswer & { readonly reason?: string | undefined },
  applicationId: string,
) {
  const status = state ?? (reason === 'UNKNOWN' ? ('REMOVED' as const) : undefined)
  return {
    ...(status !== undefined && { activationStatus: status }),
    ...(blockReason !== undefined && { blockedReason: blockReason }),
    ...(userId !== undefined && { userId, applicationId }),
    applicationRoles: applicationRoles ?? [],
    activationFlags: flags ?? [],
  }
}

const METHOD = /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)$/
// oxlint-disable-next-line no-control-regex -- a line break would begin a new line of the row in the audit log
const CONTROL = /[\u0000-\u001F\u007F]/
const RESOURCE_ID_LENGTH_MAX = 1024
const NO_BYTES = new Uint8Array(0)
/** Printable ASCII without the quote that ends a value. */
const VALUE = /^[\u0020-\u0021\u0023-\u007E]*$/
