// Reads and stores OpenID providers of an application, as administrators configure them: endpoints, pawl's own client authentication, and whether
// the bank commits the phone (cloud §10.1).
import { readSigningKey } from '../../crypto/signing-key.ts'
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import { notFound, PawlError, type Violation } from '../../lib/errors.ts'
import { findTargetProblem, type TargetRules } from '../../lib/outbound.ts'
import { findApplication } from '../../storage/application/applications.ts'
import {
  deleteOidcProvider,
  findOidcProvider,
  listOidcProviders,
  type OidcProviderRow,
  storeOidcProvider,
} from '../../storage/application/oidc-providers.ts'
import type { Db } from '../../storage/database/database.ts'
import type { RecordKeys } from '../secrets/record-keys.ts'
import { ifOpens, type KeyParts, places, unlessAltered } from '../secrets/secrets.ts'

/** The methods by which pawl authenticates at the token endpoint (OpenID Connect Core 1.0, 9). */
export const CLIENT_AUTHENTICATIONS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const

/** The signature algorithms of ID tokens, all with public keys. */
export const ID_TOKEN_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

/** The settings of a provider, without secrets. Only endpoints that are null are read from the provider's discovery. */
export interface OidcSettings {
  readonly issuer: string
  readonly clientId: string
  readonly clientAuthentication: (typeof CLIENT_AUTHENTICATIONS)[number]
  /** The `kid` of the private key, for the header of its signatures. */
  readonly keyId: string | null
  readonly scopes: readonly string[]
  readonly redirectUri: string
  readonly authorizationEndpoint: string | null
  readonly tokenEndpoint: string | null
  readonly jwksUri: string | null
  /** The algorithms with which an ID token may be signed. */
  readonly algorithms: readonly (typeof ID_TOKEN_ALGORITHMS)[number][]
  readonly userIdClaim: string
  /** False when the bank has to commit the bound phone. */
  readonly isCommitted: boolean
  readonly flags: readonly string[]
}

/** A provider of one application. */
export interface OidcProvider extends Omit<OidcProviderRow, 'settings' | 'credentials'> {
  readonly settings: OidcSettings
  /** The client secret or the private key in PEM, in the clear; empty where the client has none. */
  readonly credentials: string
}

/** Reads a provider of an application. Undefined when no provider has the id, and when its row was altered in the database. */
export async function readOidcProvider(
  { db, recordKeys }: Pick<KeyParts, 'db' | 'recordKeys'>,
  applicationId: string,
  providerId: string,
): Promise<OidcProvider | undefined> {
  const row = await findOidcProvider(db, applicationId, providerId)
  return row && toProvider(recordKeys, row)
}

/** Reads all providers of an application that open, sorted by id. */
export const readOidcProviders = async (
  { db, recordKeys }: Pick<KeyParts, 'db' | 'recordKeys'>,
  applicationId: string,
): Promise<readonly OidcProvider[]> =>
  (await listOidcProviders(db, applicationId)).flatMap((row) => ifOpens(() => toProvider(recordKeys, row)) ?? [])

/** Undefined for a row that was altered: whoever can make a provider can bind a phone for any user. */
function toProvider(recordKeys: RecordKeys, { applicationId, providerId, ...row }: OidcProviderRow): OidcProvider | undefined {
  const place = places.oidcCredentials(applicationId, providerId, row.settings)
  const opened = unlessAltered(() => recordKeys.open(place, row.credentials ?? NOT_SEALED))
  if (opened === undefined) return undefined
  return { applicationId, providerId, settings: JSON.parse(row.settings) as OidcSettings, credentials: fromUtf8(opened) }
}

/** Whether the client authenticates with a secret or a key. */
export const hasCredentials = ({ settings }: Pick<OidcProvider, 'settings'>): boolean => settings.clientAuthentication !== 'none'

/**
 * Stores a provider, in place of the one with the same id. `credentials` are the client secret, or the private key in PEM; undefined keeps the
 * stored ones. Throws REQUEST_INVALID for settings that contradict each other, and when credentials would be kept for another server or another
 * use. Throws ADMINISTRATION_REFUSED when the application does not exist.
 */
export async function writeOidcProvider(
  parts: KeyParts & { readonly settings: TargetRules },
  { applicationId, providerId, settings }: Omit<OidcProvider, 'credentials'>,
  credentials: string | undefined,
): Promise<void> {
  const { db, platform, recordKeys } = parts
  if ((await findApplication(db, applicationId)) === undefined) throw notFound('application', applicationId)
  const rows = await listOidcProviders(db, applicationId)
  const existing = rows.find((row) => row.providerId === providerId)
  const before = existing && ifOpens(() => toProvider(recordKeys, existing))
  const isKept = credentials === undefined && before !== undefined && isSameClient(before.settings, settings)
  const violations = [...findAddressProblems(settings, parts.settings), ...findCredentialProblems(settings, credentials, isKept)]
  if (existing === undefined && rows.length >= PROVIDERS_MAX)
    violations.push({ fieldName: 'providerId', hint: `would be one more than the ${PROVIDERS_MAX} that an application may have` })
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'not an OpenID provider', violations })
  const text = JSON.stringify(settings)
  const shown = isKept ? before.credentials : (credentials ?? '')
  const sealed = recordKeys.seal(places.oidcCredentials(applicationId, providerId, text), utf8(shown))
  await storeOidcProvider(db, { applicationId, providerId, settings: text, credentials: sealed }, new Date(platform.now()))
}

/** Removes a provider. Throws ADMINISTRATION_REFUSED when there is none. */
export async function removeOidcProvider(db: Db, applicationId: string, providerId: string): Promise<void> {
  if (!(await deleteOidcProvider(db, applicationId, providerId))) throw notFound('provider', `${providerId} of ${applicationId}`)
}

/** Whether stored credentials may be kept. Nobody can read them back, so a change of the address must not send them to another server. */
const isSameClient = (one: OidcSettings, other: OidcSettings): boolean =>
  one.issuer === other.issuer &&
  one.tokenEndpoint === other.tokenEndpoint &&
  one.clientId === other.clientId &&
  kindOf(one) === kindOf(other)

/** The kind of credentials. The two methods for a client secret are one kind. */
const kindOf = ({ clientAuthentication }: OidcSettings): string => clientAuthentication.replace(/_(?:basic|post)$/, '')

const isKeyShown = ({ clientAuthentication }: OidcSettings): boolean => clientAuthentication === 'private_key_jwt'

function findAddressProblems(settings: OidcSettings, rules: TargetRules): Violation[] {
  const addresses = ['issuer', 'authorizationEndpoint', 'tokenEndpoint', 'jwksUri'] as const
  const wrong = addresses.flatMap((fieldName) => {
    const address = settings[fieldName]
    const hint = address === null ? undefined : findTargetProblem(address, rules)
    return hint === undefined ? [] : [{ fieldName, hint }]
  })
  if (settings.issuer.includes('?')) wrong.push({ fieldName: 'issuer', hint: 'must have no query' })
  return URL.canParse(settings.redirectUri) && !settings.redirectUri.includes('#')
    ? wrong
    : [...wrong, { fieldName: 'redirectUri', hint: 'must be a URL without a fragment' }]
}

function findCredentialProblems(settings: OidcSettings, credentials: string | undefined, isKept: boolean): Violation[] {
  const { clientAuthentication } = settings
  const fieldName = isKeyShown(settings) ? 'privateKey' : 'clientSecret'
  if (clientAuthentication === 'none')
    return credentials === undefined ? [] : [{ fieldName, hint: 'is for a client that shows it: not with none' }]
  if (isKept) return []
  if (credentials === undefined) return [{ fieldName, hint: 'must be given: there is none for this client and server' }]
  if (!isKeyShown(settings) || readSigningKey(credentials) !== undefined) return []
  return [{ fieldName, hint: 'must be a private key of RSA (2048 bits or more), P-256, P-384 or Ed25519: PKCS#8 in PEM' }]
}

/** The largest number of providers of an application. */
const PROVIDERS_MAX = 16
/** Opens at no place. */
const NOT_SEALED = new Uint8Array(0)
