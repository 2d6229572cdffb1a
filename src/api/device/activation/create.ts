// Implements the parts of activation/create that both generations share: the outer layer, and the binding of a device to its activation. Spec: v3
// §8.3 to §8.6, v4 §8.4.
import { type Static, Type } from '@sinclair/typebox'
import {
  type ExchangedKeys,
  exchangeKeys,
  type ExchangeRequest,
  type KeyAgreement,
  refuseActivation,
  requireDeviceKeys,
} from '../../../domain/activation/activation.ts'
import { activateDirectly, recogniseUser } from '../../../domain/activation/direct.ts'
import { hashActivationCode } from '../../../domain/secrets/secrets.ts'
import { readUserInfoOfNew } from '../../../domain/user-info/user-info.ts'
import { AnyMembers, MembersOf, OneOf, OptionalOrNull, Text } from '../../../http/types.ts'
import { PawlError, requestRefused, type Violation } from '../../../lib/errors.ts'
import { isOlderVersion } from '../../../protocol/wire/header.ts'
import type { DeviceDescription } from '../../../storage/activation/keys.ts'
import type { VersionRow } from '../../../storage/application/version.ts'
import type { DeviceParts } from '../parts.ts'
import type { LoginProof } from '../../../domain/oidc/logins.ts'
import { type OidcProvider, readOidcProvider } from '../../../domain/oidc/provider.ts'
import { IDENTIFIER, isIdentifier } from '../../../lib/identifier.ts'
import { OutboundError } from '../../../lib/outbound.ts'
import { sourceOf } from '../../../lib/address.ts'

/** The longest body, in bytes. Attributes and extras of the app have no limit of their own. They are within two layers of Base64. */
export const LAYER_1_BYTES_MAX = 64 * 1024

export const Layer1Request = Type.Object({
  // There is no type RECOVERY.
  type: OneOf(['CODE', 'DIRECT', 'CUSTOM']),
  identityAttributes: MembersOf(Type.String(), { minProperties: 1 }),
  customAttributes: OptionalOrNull(AnyMembers),
  activationData: Type.Object({}),
})

/** The members in which the device describes itself, without its keys. */
export const DeviceMembers = {
  activationOtp: OptionalOrNull(Type.String()),
  activationName: OptionalOrNull(Text(255)),
  extras: OptionalOrNull(Type.String()),
  platform: OptionalOrNull(Text(255)),
  deviceInfo: OptionalOrNull(Text(255)),
  externalId: OptionalOrNull(Text(255)),
}
const Device = Type.Object(DeviceMembers)

export const Layer1Response = Type.Object({
  activationData: AnyMembers,
  customAttributes: AnyMembers,
  /** Absent when there are no claims. */
  userInfo: Type.Optional(AnyMembers),
})

/**
 * Throws REQUEST_INVALID for a request of type CODE without code. Throws ACTIVATION_FAILED when the application does not admit the protocol version,
 * because all codes of such a phone would be refused.
 */
export function requireActivatable(
  parts: DeviceParts,
  { type, identityAttributes }: Static<typeof Layer1Request>,
  { minimumVersion }: VersionRow,
  protocolVersion: string,
): void {
  if (type === 'CODE' && identityAttributes['code'] === undefined)
    throw requestRefused('identityAttributes.code', 'must be present')
  if (minimumVersion !== null && isOlderVersion(protocolVersion, minimumVersion))
    throw refuseActivation(parts, 'the application does not admit the protocol version')
}

/** The hash by which the activation code of a request is looked up; null without a code. */
export const codeHashOf = (
  { type, identityAttributes }: Static<typeof Layer1Request>,
  { installationKeys }: DeviceParts,
): Uint8Array | null =>
  type === 'CODE' ? hashActivationCode(installationKeys.codeLookup, identityAttributes['code'] ?? '') : null

interface ActivationRequest extends Pick<ExchangeRequest, 'values' | 'useUp' | 'findBasis'> {
  /** Address of the caller. */
  readonly ip: string
  readonly layer1: Static<typeof Layer1Request>
  readonly layer2: Static<typeof Device>
}

/** Binds the device by the method that its request names. `sealLayer2` makes the envelope of the inner answer. */
export async function activate<Answer>(
  parts: DeviceParts,
  agreement: KeyAgreement<Answer>,
  applicationId: string,
  request: ActivationRequest,
  sealLayer2: (keys: ExchangedKeys<Answer>) => Record<string, string | number>,
): Promise<Static<typeof Layer1Response>> {
  const { keys, customAttributes } = await bind(parts, agreement, applicationId, request)
  const { activationId, userId, storedClaims } = keys
  const userInfo = await readUserInfoOfNew(parts, { applicationId, userId, activationId, storedClaims })
  return { activationData: sealLayer2(keys), customAttributes, ...(userInfo && { userInfo }) }
}

async function bind<Answer>(
  parts: DeviceParts,
  agreement: KeyAgreement<Answer>,
  applicationId: string,
  { layer1, layer2, ip, ...exchange }: ActivationRequest,
) {
  const { type, identityAttributes } = layer1
  const customAttributes = layer1.customAttributes ?? {}
  const device = describeDevice(layer2)
  if (type === 'CODE') {
    const secrets = { code: identityAttributes['code'] ?? '', otp: layer2.activationOtp ?? null }
    return { keys: await exchangeKeys(parts, agreement, { ...secrets, ...exchange }, device), customAttributes }
  }
  const login = type === 'DIRECT' ? await readLogin(parts, applicationId, identityAttributes) : undefined
  if (login !== undefined) {
    const { isCommitted, flags } = login.provider.settings
    countLogin(parts, login, ip)
    // The code of a login can be redeemed only once, so all checks that do not need its result come first.
    await requireDeviceKeys(parts, agreement)
    await exchange.useUp()
    const userId = await redeemLogin(parts, login)
    const terms = { isCommitted, flags, oidcProviderId: login.provider.providerId }
    return { keys: await activateDirectly(parts, agreement, { applicationId, userId }, terms, device), customAttributes }
  }
  // The values are used up before the provider is asked, so that the provider gets each request only once.
  await exchange.useUp()
  const user = await recogniseUser(parts.activationProvider, parts, ip, {
    applicationId,
    type,
    identityAttributes,
    customAttributes,
    protocolVersion: agreement.version,
    platform: device.platform ?? undefined,
    deviceInfo: device.deviceInfo ?? undefined,
  })
  const keys = await activateDirectly(parts, agreement, { applicationId, userId: user.userId }, user, device)
  return { keys, customAttributes: user.customAttributes ?? customAttributes }
}

const describeDevice = (layer2: Static<typeof Device>): DeviceDescription => ({
  name: layer2.activationName ?? null,
  platform: layer2.platform ?? null,
  deviceInfo: layer2.deviceInfo ?? null,
  extras: layer2.extras ?? null,
  externalId: layer2.externalId ?? null,
})

/** A login at an OpenID provider of the bank. The app sends the code of the login, which pawl redeems (v3 §8.8). */
interface Login {
  readonly provider: OidcProvider
  readonly proof: LoginProof
}

/**
 * Reads the login of an activation of the method `oidc`; undefined for any other method. Throws REQUEST_INVALID for malformed attributes, and
 * ACTIVATION_FAILED when the application has no provider of that id.
 */
async function readLogin(
  parts: Pick<DeviceParts, 'db' | 'recordKeys' | 'events'>,
  applicationId: string,
  attributes: Readonly<Record<string, string>>,
): Promise<Login | undefined> {
  const { method, providerId = '', code, nonce, codeVerifier } = attributes
  if (method !== 'oidc') return undefined
  const violations: Violation[] = []
  if (!isIdentifier(providerId)) violations.push({ fieldName: 'identityAttributes.providerId', hint: IDENTIFIER.description })
  const demand = (name: string, value: string | undefined, pattern: RegExp, hint: string): string => {
    if (value === undefined || !pattern.test(value)) violations.push({ fieldName: `identityAttributes.${name}`, hint })
    return value ?? ''
  }
  const proof = {
    code: demand('code', code, /^[\x20-\x7E]{1,4096}$/, 'must be 1 to 4096 printable characters of ASCII'),
    nonce: demand('nonce', nonce, /^[\x20-\x7E]{1,255}$/, 'must be 1 to 255 printable characters of ASCII'),
    codeVerifier: demand(
      'codeVerifier',
      codeVerifier,
      /^[A-Za-z0-9._~-]{43,128}$/,
      'must be 43 to 128 letters, digits, `-`, `.`, `_` or `~`',
    ),
  }
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'not a login', violations })
  const provider = await readOidcProvider(parts, applicationId, providerId)
  // Such a login is not passed on to the activation provider. That provider could redeem the code, because the verifier comes with it.
  if (provider === undefined) throw refuseActivation(parts, 'the application has no OpenID provider of that id')
  return { provider, proof }
}

/**
 * Counts a code that a source sends for a provider. Throws TOO_MANY_REQUESTS beyond the limit. It comes before the check of the device's keys,
 * because any stranger can cause that check. A request that is refused here does not count as a failure of its source.
 */
function countLogin({ oidcRedemptions, platform }: DeviceParts, { provider }: Login, ip: string): void {
  const { applicationId, providerId } = provider
  oidcRedemptions.take(JSON.stringify([sourceOf(ip), applicationId, providerId]), platform.monotonic())
}

/** Redeems the code and returns the user id. Throws ACTIVATION_FAILED when the provider names no user. */
async function redeemLogin(parts: DeviceParts, { provider, proof }: Login): Promise<string> {
  try {
    return await parts.oidcLogins.redeem(provider, proof)
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    parts.events.activationProviderFailed({ applicationId: provider.applicationId, err: cause })
    throw new PawlError('ACTIVATION_FAILED', { detail: 'the OpenID provider gave no user', cause })
  }
}
