// /admin/applications/{id}/oidc-providers: manages OpenID providers, whose logins bind phones without an activation code (cloud §10.1).
import { type Static, Type } from '@sinclair/typebox'
import { requireApplication } from '../../../domain/application/application.ts'
import {
  CLIENT_AUTHENTICATIONS,
  hasCredentials,
  ID_TOKEN_ALGORITHMS,
  type OidcProvider,
  readOidcProvider,
  readOidcProviders,
  removeOidcProvider,
  writeOidcProvider,
} from '../../../domain/oidc/provider.ts'
import { named, OneOf, withExample } from '../../../http/types.ts'
import { notFound, PawlError } from '../../../lib/errors.ts'
import type { KeyParts } from '../../../domain/secrets/secrets.ts'
import { type Audited, auditedEndpoint } from '../audited-endpoint.ts'
import { adminRead } from '../endpoint.ts'
import { Flags, Identifier, OfId, WordOfPath } from '../fields.ts'

const ProviderId = withExample(WordOfPath, 'web-bank')

const OfProvider = Type.Object({ id: Identifier, providerId: ProviderId })

const Address = Type.String({ pattern: '^[^]{1,1024}$', description: 'must be 1 to 1024 characters' })

/** Printable ASCII without spaces. */
const Word = Type.String({
  pattern: '^[\\x21-\\x7E]{1,255}$',
  description: 'must be 1 to 255 printable characters of ASCII, no spaces',
})

const ClientAuthentication = OneOf(CLIENT_AUTHENTICATIONS)

/** The schema has a name, because the Java of a generator does not compile for a set of an enum without one. */
const IdTokenAlgorithm = named('IdTokenAlgorithm', OneOf(ID_TOKEN_ALGORITHMS))

/** The settings of a provider that answers show. */
const settingMembers = {
  issuer: withExample(Address, 'https://login.bank.example'),
  clientId: withExample(Word, 'mobile-app'),
  clientAuthentication: Type.Optional(ClientAuthentication),
  keyId: Type.Optional(Word),
  scopes: Type.Optional(Type.Array(withExample(Word, 'openid'), { uniqueItems: true, minItems: 1, maxItems: 32 })),
  redirectUri: withExample(Address, 'https://app.bank.example/oidc'),
  authorizationEndpoint: Type.Optional(Address),
  tokenEndpoint: Type.Optional(Address),
  jwksUri: Type.Optional(Address),
  algorithms: Type.Optional(Type.Array(IdTokenAlgorithm, { uniqueItems: true, minItems: 1 })),
  userIdClaim: Type.Optional(withExample(Word, 'sub')),
  isCommitted: Type.Optional(Type.Boolean({ description: 'false: the bank commits what was bound' })),
  flags: Type.Optional(Flags),
  /** False is refused, because without PKCE a stolen code would be enough. */
  pkceEnabled: Type.Optional(Type.Literal(true)),
}

/** A provider in an answer, without the secrets of the client. */
const Provider = named('OidcProvider', Type.Object({ providerId: ProviderId, ...settingMembers, hasCredentials: Type.Boolean() }))
export type Provider = Static<typeof Provider>

const NewProvider = withExample(
  Type.Object({
    ...settingMembers,
    clientSecret: Type.Optional(
      Type.String({ pattern: '^[\\x20-\\x7E]{1,1024}$', description: 'must be 1 to 1024 printable characters of ASCII' }),
    ),
    privateKey: Type.Optional(
      Type.String({ pattern: '^[^\\u0000]{1,8192}$', description: 'must be a private key: PKCS#8 in PEM' }),
    ),
  }),
  {
    issuer: 'https://login.bank.example',
    clientId: 'mobile-app',
    redirectUri: 'https://app.bank.example/oidc',
    clientSecret: 'the secret of the client',
  },
)

const toAnswer = ({ providerId, settings }: OidcProvider): Static<typeof Provider> => {
  const { keyId, authorizationEndpoint, tokenEndpoint, jwksUri, ...others } = settings
  return {
    providerId,
    ...others,
    ...(keyId !== null && { keyId }),
    ...(authorizationEndpoint !== null && { authorizationEndpoint }),
    ...(tokenEndpoint !== null && { tokenEndpoint }),
    ...(jwksUri !== null && { jwksUri }),
    scopes: [...settings.scopes],
    algorithms: [...settings.algorithms],
    flags: [...settings.flags],
    pkceEnabled: true,
    hasCredentials: hasCredentials({ settings }),
  }
}

/** The settings that are stored for a body, with defaults for absent members. */
const toSettings = (body: Static<typeof NewProvider>): OidcProvider['settings'] => ({
  issuer: body.issuer,
  clientId: body.clientId,
  clientAuthentication: body.clientAuthentication ?? 'client_secret_basic',
  keyId: body.keyId ?? null,
  scopes: body.scopes ?? ['openid'],
  redirectUri: body.redirectUri,
  authorizationEndpoint: body.authorizationEndpoint ?? null,
  tokenEndpoint: body.tokenEndpoint ?? null,
  jwksUri: body.jwksUri ?? null,
  algorithms: body.algorithms ?? ['RS256'],
  userIdClaim: body.userIdClaim ?? 'sub',
  isCommitted: body.isCommitted ?? true,
  flags: body.flags ?? [],
})

/**
 * The secret or key of a body, as the kind of client authentication demands. Throws REQUEST_INVALID for that of the other kind, and for scopes
 * without `openid`.
 */
function credentialsOf({
  clientAuthentication,
  clientSecret,
  privateKey,
  scopes,
}: Static<typeof NewProvider>): string | undefined {
  const isKeyShown = clientAuthentication === 'private_key_jwt'
  const [other, fieldName] = isKeyShown ? [clientSecret, 'clientSecret'] : [privateKey, 'privateKey']
  const violations = [
    ...(other === undefined ? [] : [{ fieldName, hint: 'does not belong to this clientAuthentication' }]),
    ...(scopes?.includes('openid') === false
      ? [{ fieldName: 'scopes', hint: 'must have openid: without it no ID token comes' }]
      : []),
  ]
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'not an OpenID provider', violations })
  return isKeyShown ? privateKey : clientSecret
}

/** Reads a provider. Throws ADMINISTRATION_REFUSED when there is none. */
async function requireProvider(parts: Pick<KeyParts, 'db' | 'recordKeys'>, id: string, providerId: string) {
  const provider = await readOidcProvider(parts, id, providerId)
  if (provider === undefined) throw notFound('provider', `${providerId} of ${id}`)
  return toAnswer(provider)
}

/** Records changes of a provider, as answers show it, without secrets. */
const auditedProvider: Audited<Static<typeof OfProvider>> = {
  target: ({ params: { id, providerId } }) => `OpenID provider ${providerId} of ${id}`,
  view: async ({ params: { id, providerId }, parts }) => {
    const provider = await readOidcProvider(parts, id, providerId)
    return provider && toAnswer(provider)
  },
}

const oidcProvidersList = adminRead({
  route: 'GET /admin/applications/:id/oidc-providers',
  operationId: 'listOidcProviders',
  summary: 'Lists the OpenID providers of an application',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfId,
  response: Type.Object({ providers: Type.Array(Provider) }),
  async handle({ params: { id }, parts }) {
    await requireApplication(parts.db, id)
    return { providers: (await readOidcProviders(parts, id)).map(toAnswer) }
  },
})

const oidcProviderRead = adminRead({
  route: 'GET /admin/applications/:id/oidc-providers/:providerId',
  operationId: 'readOidcProvider',
  summary: 'Reads an OpenID provider',
  errors: ['ADMINISTRATION_REFUSED'],
  params: OfProvider,
  response: Provider,
  handle: ({ params: { id, providerId }, parts }) => requireProvider(parts, id, providerId),
})

const oidcProviderStore = auditedEndpoint({
  route: 'PUT /admin/applications/:id/oidc-providers/:providerId',
  operationId: 'storeOidcProvider',
  summary: 'Stores an OpenID provider',
  description:
    'In place of the one of that id. Without `clientSecret` and `privateKey` what is there stays, which nobody can read back, as long as issuer, token endpoint, client and kind of authentication are the same.',
  params: OfProvider,
  body: NewProvider,
  response: Provider,
  async handle({ params: { id, providerId }, body, parts }) {
    const provider = { applicationId: id, providerId, settings: toSettings(body) }
    await writeOidcProvider(parts, provider, credentialsOf(body))
    return requireProvider(parts, id, providerId)
  },
  audited: auditedProvider,
})

const oidcProviderRemove = auditedEndpoint({
  route: 'DELETE /admin/applications/:id/oidc-providers/:providerId',
  operationId: 'removeOidcProvider',
  summary: 'Removes an OpenID provider',
  params: OfProvider,
  handle: async ({ params: { id, providerId }, parts }) => removeOidcProvider(parts.db, id, providerId),
  audited: auditedProvider,
})

export const oidcProviderEndpoints = [oidcProvidersList, oidcProviderRead, oidcProviderStore, oidcProviderRemove]
