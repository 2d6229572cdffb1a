// Declares members that several doors share (cloud §12.1, §12.2), reads them, and composes the members of an answer about an activation.
import { type Static, Type } from '@sinclair/typebox'
import type { DeviceRequest } from '../../channel/stages/receive.ts'
import { named, OneOf, withExample } from '../../http/types.ts'
import { parseAddress } from '../../lib/address.ts'
import { parseBase64 } from '../../lib/base64.ts'
import { PawlError, requestRefused } from '../../lib/errors.ts'
import type { Factors, SignatureAlgorithm } from '../../protocol/protocol.ts'
import type { ActivationRow } from '../../storage/activation/find.ts'
import { toList } from '../../storage/database/columns.ts'
import type { ActivationState, Right, Role } from '../../storage/database/schema.ts'
import { Flag, State, Time } from '../cloud/fields.ts'

export const HeaderOfPhone = (description: string, example: string) =>
  Type.String({ minLength: 1, maxLength: 4096, description, examples: [example] })

/** The factors that a bank may demand. */
export const FACTORS = ['POSSESSION', 'POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY'] as const satisfies readonly Factors[]

const FactorNames = named(
  'DoorFactors',
  Type.Array(OneOf<Factors>(FACTORS), {
    minItems: 1,
    maxItems: FACTORS.length,
    description: 'Factors that are enough. Without it, possession with knowledge or with biometry.',
    examples: [['POSSESSION_KNOWLEDGE']],
  }),
)
/** The combinations of factors that are enough if the request names none. */
export const FACTORS_WITHOUT: readonly Factors[] = ['POSSESSION_KNOWLEDGE', 'POSSESSION_BIOMETRY']

const FlagNames = (description: string) => Type.Array(withExample(Flag, 'VIP'), { maxItems: 64, description })
const REFUSED_FLAGS_WITHOUT: readonly string[] = ['VERIFICATION_PENDING', 'VERIFICATION_IN_PROGRESS']

/** The factors that a code or token must have, and the flags that its activation must have and not have. */
export const PROOF_TERMS = {
  factors: Type.Optional(FactorNames),
  refusedFlags: Type.Optional(
    FlagNames('flags that the activation must not have; without it, VERIFICATION_PENDING and VERIFICATION_IN_PROGRESS'),
  ),
  requiredFlags: Type.Optional(FlagNames('flags that the activation must have; without it, none')),
}

export const Client = named(
  'DoorClient',
  Type.Object({
    address: withExample(
      Type.String({ minLength: 1, maxLength: 64, description: 'IP address of the phone as the bank saw it' }),
      '203.0.113.7',
    ),
    userAgent: Type.Optional(Type.String({ pattern: '^[^]{0,1024}$', description: 'must be at most 1024 characters' })),
  }),
)

export const Method = withExample(
  Type.String({
    pattern: '^[A-Za-z]{3,6}$',
    description: 'must be GET, POST, PUT, PATCH or DELETE, of the request of the phone',
  }),
  'POST',
)

export const ResourceId = withExample(
  Type.String({
    pattern: '^[^\\u0000-\\u001F\\u007F]{1,1024}$',
    description:
      'must be 1 to 1024 characters without control characters: what app and bank agreed on for the endpoint, never taken from the request',
  }),
  '/transfer',
)

export const AuditText = Type.String({
  pattern: '^[^\\u0000-\\u001F\\u007F]{0,1024}$',
  description: 'must be at most 1024 bytes without control characters; the audit log keeps it for years',
})

/** The request of a phone, as the bank describes it. */
interface SentRequest {
  readonly method: string
  readonly resourceId: string
  /** Base64 text. */
  readonly body?: string | undefined
  readonly query?: string | undefined
  readonly client: { readonly address: string; readonly userAgent?: string | undefined }
}

/**
 * The request of a phone with one protocol header. Throws REQUEST_INVALID for a fault of the bank: an unknown method, a text that is no address,
 * bad Base64, a body of more than `bytesMax` bytes, a resource id that is pawl's own.
 */
export function readSent(
  { method, resourceId, body, query, client }: SentRequest,
  header: 'authorization' | 'token' | 'encryption',
  value: string,
  bytesMax: number,
): DeviceRequest {
  const upper = method.toUpperCase()
  if (!METHODS.includes(upper)) throw requestRefused('method', `must be one of ${METHODS.join(', ')}`)
  refuseReserved(resourceId)
  const bytes = body === undefined ? NO_BODY : parseBase64(body)
  if (bytes === undefined) throw requestRefused('body', 'must be Base64')
  if (bytes.length > bytesMax) throw requestRefused('body', `must be Base64 of at most ${bytesMax} bytes`)
  return {
    method: upper,
    headers: headersOf(header, value, client),
    contentType: undefined,
    body: bytes,
    query,
    ip: readAddress(client),
  }
}

/** Throws REQUEST_INVALID for a resource id that is pawl's own. */
export function refuseReserved(resourceId: string): void {
  if (RESERVED.some((prefix) => resourceId.startsWith(prefix)))
    throw requestRefused('resourceId', `must not begin with ${RESERVED.join(', ')}: these are pawl's own`)
}

/** The address of the phone. Throws REQUEST_INVALID for a text that is no address. */
export function readAddress({ address }: SentRequest['client']): string {
  const ip = parseAddress(address)
  if (ip === undefined) throw requestRefused('client.address', 'must be an IP address')
  return ip
}

/** The headers of a phone's request. The bank does not say which spelling it received, so the spelling that accepts both scheme words is used. */
export const headersOf = (
  header: 'authorization' | 'token' | 'encryption',
  value: string,
  { userAgent }: SentRequest['client'],
): DeviceRequest['headers'] => ({ [`x-svc-${header}`]: value, 'user-agent': userAgent })

/** Throws REQUEST_INVALID for an `auditText` of more than 1024 bytes. */
export function refuseLongText(text: string | undefined): void {
  if (text !== undefined && Buffer.byteLength(text) > TEXT_BYTES_MAX)
    throw requestRefused('auditText', `must have at most ${TEXT_BYTES_MAX} bytes`)
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
// Codes for these resource ids are meant for pawl's own endpoints. A door would use up such a code, and the endpoint would not run.
const RESERVED = ['/pa/', '/operation/', '/api/']
export const NO_BODY = new Uint8Array(0)
const TEXT_BYTES_MAX = 1024

/** The roles that may call doors. */
export const DOOR_ROLES: readonly Role[] = ['admin', 'integration', 'verification']

/** Throws ROLE_FORBIDDEN for a credential without the right (cloud §2.4). */
export function requireRight({ rights }: { readonly rights: readonly Right[] }, right: Right): void {
  if (rights.includes(right)) return
  const hint = `must have the right ${right} (PATCH /admin/users/{name})`
  throw new PawlError('ROLE_FORBIDDEN', { detail: hint, violations: [{ fieldName: 'credential', hint }] })
}

const REFUSALS = ['SIGNATURE_WRONG', 'FORM', 'KEYS_MISSING', 'STATE', 'UNKNOWN'] as const

/** The reason why a signature is not valid. */
export type SignatureRefusal = (typeof REFUSALS)[number]

const STATES: readonly ActivationState[] = ['PENDING_COMMIT', 'ACTIVE', 'BLOCKED', 'REMOVED']

/** The states of an activation in which its signatures are valid. A CREATED activation has no keys. */
export const States = Type.Array(OneOf(STATES), { minItems: 1 })

/** The algorithm of a device key. */
export const Algorithm = OneOf<SignatureAlgorithm>(['ES256', 'ES384', 'ML-DSA-65', 'ML-DSA-87'])

/** The verdict about a signature. The last three members are present only for an activation of the caller's application. */
export const SignatureVerdict = {
  isValid: Type.Boolean(),
  reason: Type.Optional(OneOf(REFUSALS, { description: 'for the log of the bank, never for the phone' })),
  activationId: Type.Optional(Type.String()),
  userId: Type.Optional(Type.String()),
  state: Type.Optional(State),
}

/** The members of an answer about an activation of the caller's application. */
export const OWN_MEMBERS = {
  activationId: Type.Optional(Type.String({ format: 'uuid' })),
  userId: Type.Optional(Type.String()),
  state: Type.Optional(State),
  blockReason: Type.Optional(Type.String({ description: 'of an activation that is BLOCKED' })),
  blockExpiresAt: Type.Optional(Time),
  remainingAttempts: Type.Optional(Type.Integer({ description: 'wrong codes until the activation is blocked, after this one' })),
  factors: Type.Optional(Type.String({ description: 'announced by the phone; proven only where `isValid` is true' })),
  protocolVersion: Type.Optional(Type.String({ description: 'of the header', examples: ['3.3'] })),
  flags: Type.Optional(Type.Array(Type.String())),
  applicationVersion: Type.Optional(Type.String({ description: 'name of the version that the header names' })),
  applicationRoles: Type.Optional(Type.Array(Type.String())),
}

/** The members with the verdict, and with the reason of a refusal. */
export const verdictMembers = <Reason extends string>(reasons: readonly Reason[]) => ({
  isValid: Type.Boolean(),
  reason: Type.Optional(OneOf(reasons, { description: 'why `isValid` is false: for the log of the bank, never for the phone' })),
})

export type OwnAnswer = Static<ReturnType<typeof Type.Object<typeof OWN_MEMBERS>>>

/**
 * Values of OWN_MEMBERS. `versionName` is the name of the application version that the request names, if it names one; `roles` are those of the
 * application.
 */
export const composeOwn = (
  activation: ActivationRow,
  { versionName, roles }: { readonly versionName?: string; readonly roles: readonly string[] },
): OwnAnswer => ({
  activationId: activation.activationId,
  userId: activation.userId,
  state: activation.state,
  ...(activation.state === 'BLOCKED' && { blockReason: activation.blockedReason ?? 'MAX_FAILED_ATTEMPTS' }),
  ...(activation.blockExpiresAt && { blockExpiresAt: activation.blockExpiresAt.getTime() }),
  remainingAttempts: Math.max(0, activation.maxFailedAttempts - activation.failedAttempts),
  flags: toList(activation.flags),
  ...(versionName !== undefined && { applicationVersion: versionName }),
  applicationRoles: [...roles],
})

/** Whether an activation has all required flags, and no refused one. */
export function areFlagsRight(
  { flags: text }: Pick<ActivationRow, 'flags'>,
  {
    refusedFlags = REFUSED_FLAGS_WITHOUT,
    requiredFlags = [],
  }: { readonly refusedFlags?: readonly string[] | undefined; readonly requiredFlags?: readonly string[] | undefined },
): boolean {
  const flags = toList(text)
  return !refusedFlags.some((flag) => flags.includes(flag)) && requiredFlags.every((flag) => flags.includes(flag))
}
