// config/oidc: answers the values with which an app that is not activated yet logs its user in at an OpenID provider of the bank (v3 §8.8).
import { Type } from '@sinclair/typebox'
import { openedByApplicationEndpoint } from '../../../channel/flow/opened-by-application.ts'
import { readOidcProvider } from '../../../domain/oidc/provider.ts'
import { NotBlank, ObjectResponse, ok } from '../../../http/types.ts'
import { PawlError } from '../../../lib/errors.ts'
import { OutboundError } from '../../../lib/outbound.ts'
import type { MobileTokenParts } from '../parts.ts'

export const configOidc = openedByApplicationEndpoint({
  path: 'config/oidc',
  summary: 'What an app needs to let its user log in at an OpenID provider',
  errors: ['CONFIGURATION_FAILED'],
  encrypt: { sharedInfo1: '/pa/generic/application' },
  // This request has no requestObject, in contrast to all others below /api.
  request: Type.Object({ providerId: NotBlank(255) }),
  response: ObjectResponse(
    Type.Object({
      providerId: Type.String(),
      clientId: Type.String(),
      scopes: Type.String({ description: 'with spaces between them', examples: ['openid profile'] }),
      authorizeUri: Type.String(),
      redirectUri: Type.String(),
      pkceEnabled: Type.Literal(true),
    }),
  ),
  async handle({ request: { providerId }, version: { applicationId } }, parts: MobileTokenParts) {
    const provider = await readOidcProvider(parts, applicationId, providerId)
    if (provider === undefined) throw new PawlError('CONFIGURATION_FAILED', { detail: 'the application has no such provider' })
    const { settings } = provider
    const authorizeUri = await parts.oidcLogins.findAuthorizationEndpoint(provider).catch((cause: unknown) => {
      if (!(cause instanceof OutboundError)) throw cause
      parts.events.activationProviderFailed({ applicationId, err: cause })
      throw new PawlError('CONFIGURATION_FAILED', { detail: 'the authorization endpoint is not known', cause })
    })
    const { clientId, redirectUri } = settings
    return ok({ providerId, clientId, scopes: settings.scopes.join(' '), authorizeUri, redirectUri, pkceEnabled: true as const })
  },
})
