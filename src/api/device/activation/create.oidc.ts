// activation/create for a user who has logged in at an OpenID provider of the bank: the app sends the code of the login (v3 §8.8).
import { refuseActivation } from '../../../domain/activation/activation.ts'
import type { LoginProof } from '../../../domain/oidc/logins.ts'
import { type OidcProvider, readOidcProvider } from '../../../domain/oidc/provider.ts'
import { PawlError, type Violation } from '../../../lib/errors.ts'
import { IDENTIFIER, isIdentifier } from '../../../lib/identifier.ts'
import { OutboundError } from '../../../lib/outbound.ts'
import { sourceOf } from '../../../lib/address.ts'
import type { DeviceParts } from '../parts.ts'

/** A login whose code can be redeemed. */
export interface Login {
  readonly provider: OidcProvider
  readonly proof: LoginProof
}

/**
 * Reads the login of an activation of the method `oidc`; undefined for any other. Throws REQUEST_INVALID for malformed attributes, and
 * ACTIVATION_FAILED when the application has no provider of that id.
 */
export async function readLogin(
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
    code: demand('code', code, /^[\x20-\x7E]{1,4096}$/, 'must be 1 to 4096 printable characters'),
    nonce: demand('nonce', nonce, /^[\x20-\x7E]{1,255}$/, 'must be 1 to 255 printable characters'),
    codeVerifier: demand(
      'codeVerifier',
      codeVerifier,
      /^[A-Za-z0-9._~-]{43,128}$/,
      'must be 43 to 128 letters, digits, `-`, `.`, `_` or `~`',
    ),
  }
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'not a login', violations })
  const provider = await readOidcProvider(parts, applicationId, providerId)
  // Such a login does not go to the activation provider, which could redeem the code, because the verifier comes with it.
  if (provider === undefined) throw refuseActivation(parts, 'the application has no OpenID provider of that id')
  return { provider, proof }
}

/**
 * Counts a code that a source brings for a provider. Throws TOO_MANY_REQUESTS for one too many. It comes before the device's keys are tried:
 * every stranger can ask for that, and a request refused here is not one of the failures of its source.
 */
export function countLogin({ oidcRedemptions, platform }: DeviceParts, { provider }: Login, ip: string): void {
  const { applicationId, providerId } = provider
  oidcRedemptions.take(JSON.stringify([sourceOf(ip), applicationId, providerId]), platform.monotonic())
}

/** Redeems the code and returns the user id. Throws ACTIVATION_FAILED when it names no user. */
export async function redeemLogin(parts: DeviceParts, { provider, proof }: Login): Promise<string> {
  try {
    return await parts.oidcLogins.redeem(provider, proof)
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    parts.events.activationProviderFailed({ applicationId: provider.applicationId, err: cause })
    throw new PawlError('ACTIVATION_FAILED', { detail: 'the OpenID provider gave no user', cause })
  }
}
