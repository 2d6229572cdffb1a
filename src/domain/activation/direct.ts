// Makes activations without a code: a provider of the bank finds the user from the values that the phone sends (v3 §8.6).
import { sourceOf } from '../../lib/address.ts'
import { PawlError } from '../../lib/errors.ts'
import { isIdentifier } from '../../lib/identifier.ts'
import { describeUncarried, isJsonObject } from '../../lib/json.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { findRegistrationBasis } from '../../storage/activation/insert.ts'
import type { DeviceDescription } from '../../storage/activation/keys.ts'
import { insertAuditEvent } from '../../storage/audit/audit.ts'
import { inTransaction, isUniqueViolation, type Pool } from '../../storage/database/database.ts'
import { agreeOnKeys, type ExchangedKeys, type KeyAgreement, refuseActivation } from './activation.ts'
import { createAuditEvent } from '../audit/audit.ts'
import { createActivationCode } from './code.ts'
import { type ActivationParts, prepareActivation } from './created.ts'
import type { HttpProvider } from '../user-info/http-provider.ts'
import { expire, type Owner } from './registration.ts'

/** The values by which a provider recognises the user of a phone. */
export interface ActivationRequest {
  readonly applicationId: string
  readonly type: 'DIRECT' | 'CUSTOM'
  readonly identityAttributes: Readonly<Record<string, string>>
  readonly customAttributes: Readonly<Record<string, unknown>>
  /** The protocol version of the request. */
  readonly protocolVersion: string
  /** The platform that the phone names, if it does. */
  readonly platform?: string | undefined
  readonly deviceInfo?: string | undefined
}

/** Values that the provider sets for an activation, in place of the settings. */
interface DirectTerms {
  readonly isCommitted: boolean
  readonly flags?: readonly string[]
  readonly maxFailedAttempts?: number | undefined
  /** The activation may wait so long for its commit. */
  readonly expiresInSeconds?: number | undefined
  /** The OpenID provider that recognised the user. */
  readonly oidcProviderId?: string
}

/** The user whom the provider recognised, and values for the activation. */
interface RecognisedUser extends DirectTerms {
  readonly userId: string
  /** Attributes for the answer to the phone, in place of those that the phone sent. */
  readonly customAttributes: Readonly<Record<string, unknown>> | undefined
}

/** Asks the provider on behalf of a phone at the address `ip`. Throws ACTIVATION_FAILED when no provider is configured, or when it finds no user. */
export async function recogniseUser(
  provider: HttpProvider | undefined,
  { events }: Pick<ActivationParts, 'events'>,
  ip: string,
  request: ActivationRequest,
): Promise<RecognisedUser> {
  if (provider === undefined) throw refuseActivation({ events }, `no provider for activations of type ${request.type}`)
  try {
    return parseRecognisedUser(await provider(sourceOf(ip), { ...request }))
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    events.activationProviderFailed({ applicationId: request.applicationId, err: cause })
    throw new PawlError('ACTIVATION_FAILED', { detail: 'the activation provider gave no user', cause })
  }
}

/**
 * Creates an activation and exchanges its keys in one transaction (v3 §8.6). It is PENDING_COMMIT, or ACTIVE when the provider commits it.
 * Throws ACTIVATION_FAILED when the user has a live activation and may have no further one, or when the device key is invalid.
 */
export async function activateDirectly<Answer>(
  parts: ActivationParts & { readonly db: Pool },
  agreement: KeyAgreement<Answer>,
  owner: Owner,
  { isCommitted, flags = [], maxFailedAttempts, expiresInSeconds, oidcProviderId }: DirectTerms,
  device: DeviceDescription,
): Promise<ExchangedKeys<Answer>> {
  const to = isCommitted ? 'ACTIVE' : 'PENDING_COMMIT'
  const basis = await findRegistrationBasis(parts.db, owner)
  const existing = basis?.isMultiDevice ? undefined : basis?.existing
  if (existing !== undefined && !(await expire(parts, owner, existing)))
    throw refuseActivation(parts, 'the user has a registration')
  // The column for the code must have a value, although nobody ever learns this code.
  const code = createActivationCode(parts.platform.randomBytes(10))
  const commitPhase = to === 'ACTIVE' ? 'ON_KEY_EXCHANGE' : 'ON_COMMIT'
  const expiresAt = expiresInSeconds === undefined ? undefined : new Date(parts.platform.now() + expiresInSeconds * 1000)
  const limits = { flags, maxFailedAttempts, expiresAt }
  const { created, insert } = prepareActivation(parts, { ...owner, code, qrText: null, commitPhase, otpHash: null, ...limits })
  // This comes before the transaction, because the key agreement may wait in a queue.
  const agreed = await agreeOnKeys(parts, agreement, created, device, to)
  if (agreed === 'INVALID_DEVICE_KEY' || agreed === 'UNUSABLE')
    throw refuseActivation(parts, 'the keys of the request are not valid')
  const keys = await inTransaction(parts.db, async (tx) => {
    await insert(tx)
    const bound = await agreed.store(tx)
    if (bound === 'MOVED') throw new TypeError('an activation moved in the transaction that created it')
    const now = parts.platform.now()
    if (oidcProviderId !== undefined)
      await insertAuditEvent(tx, createAuditEvent(created, 'oidc_activation', { providerId: oidcProviderId }, now))
    return bound
  }).catch((error: unknown) => {
    if (isUniqueViolation(error, 'activation_live')) throw refuseActivation(parts, 'the user has a registration')
    throw error
  })
  parts.events.registrationChanged({ activationId: keys.activationId, from: 'CREATED', to, reason: null })
  return keys
}

function parseRecognisedUser(answer: Record<string, unknown>): RecognisedUser {
  const { userId, commit, customAttributes } = answer
  if (!isUserId(userId)) throw new OutboundError('the activation provider named no user')
  if (commit != null && typeof commit !== 'boolean') throw new OutboundError('commit of the activation provider is no boolean')
  if (customAttributes != null && !isJsonObject(customAttributes))
    throw new OutboundError('customAttributes of the activation provider is no object')
  const uncarried = describeUncarried({ customAttributes })
  if (uncarried !== undefined) throw new OutboundError(`the activation provider: ${uncarried}`)
  return {
    userId,
    isCommitted: commit === true,
    customAttributes: customAttributes ?? undefined,
    flags: parseFlags(answer['flags']),
    maxFailedAttempts: parseCount(answer, 'maxFailedAttempts', FAILED_ATTEMPTS_MAX),
    expiresInSeconds: parseCount(answer, 'expiresInSeconds', EXPIRES_IN_MAX),
  }
}

/** Parses the flags of an answer. Null counts as absent, as in all members of the answer. */
function parseFlags(flags: unknown): readonly string[] {
  if (flags == null) return []
  const isList = Array.isArray(flags) && flags.length <= FLAGS_MAX && flags.every(isFlag) && new Set(flags).size === flags.length
  if (!isList) throw new OutboundError(`flags of the activation provider are no list of up to ${FLAGS_MAX} flags`)
  return flags
}

function parseCount(answer: Record<string, unknown>, name: string, max: number): number | undefined {
  const count = answer[name]
  if (count == null) return undefined
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > max)
    throw new OutboundError(`${name} of the activation provider is no whole number from 1 to ${max}`)
  return count
}

/** The flags that PUT /admin/activations/{id}/flags accepts. */
const isFlag = (flag: unknown): flag is string => typeof flag === 'string' && /^[A-Z0-9_]{1,64}$/.test(flag)

const FLAGS_MAX = 64
/** The maximum that fits into the status of an activation. */
const FAILED_ATTEMPTS_MAX = 64
/** 30 days. */
const EXPIRES_IN_MAX = 2_592_000

/** A user id as in the cloud API. It must also be well-formed Unicode, which the JSON of a caller always is. */
const isUserId = (value: unknown): value is string => typeof value === 'string' && isIdentifier(value) && value.isWellFormed()
