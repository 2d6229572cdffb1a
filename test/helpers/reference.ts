// Calls the back-end API of the reference (cloud §15), with the members that a Spring library takes from a phone's request.
import { type HttpReply, type HttpRequest, member, sendJson } from '../../phone/http.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { headerOf, RESOURCE } from './door.ts'
import { expectOk } from './world.ts'

export type DialectName = 'v3' | 'v4'
export const DIALECTS: readonly DialectName[] = ['v3', 'v4']

type Members = Readonly<Record<string, unknown>>

/** Calls the API with a request object. */
export const callReference = (bank: Bank, dialect: DialectName, path: string, requestObject: unknown): Promise<HttpReply> =>
  sendJson(bank.url, 'POST', `/rest/${dialect}/${path}`, { requestObject }, basicAuthorization(bank.credential))

/** Calls the API and returns the response object; throws when the answer is an error. */
export const askReference = async (bank: Bank, dialect: DialectName, path: string, requestObject: unknown): Promise<Members> =>
  member(expectOk(await callReference(bank, dialect, path, requestObject)).json, 'responseObject') as Members

/** The names and values in a protocol header. */
export const pairsOf = (header: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))

/** The members of a call that verifies a request, with the names of a dialect. */
export function codeOf(
  dialect: DialectName,
  request: HttpRequest,
  { resourceId = RESOURCE, covered }: { readonly resourceId?: string; readonly covered?: string } = {},
): Record<string, unknown> {
  const pairs = pairsOf(headerOf(request, 'Authorization'))
  const base64 = (text: string | Uint8Array): string => Buffer.from(text as string).toString('base64')
  const data = [request.method, base64(resourceId), pairs['pa_nonce'], base64(covered ?? request.body)].join('&')
  const words = WORDS[dialect]
  return {
    activationId: pairs['pa_activation_id'],
    applicationKey: pairs['pa_application_key'],
    data,
    [words.code]: pairs['pa_signature'] ?? pairs['pa_auth_code'],
    [words.factors]: (pairs['pa_signature_type'] ?? pairs['pa_auth_code_type'] ?? '').toUpperCase(),
    [words.version]: pairs['pa_version'],
    ...(dialect === 'v3' ? { forcedSignatureVersion: null } : { allowedStates: [] }),
  }
}

/** Names of paths and members by dialect. */
export const WORDS = {
  v3: { place: 'signature', code: 'signature', factors: 'signatureType', version: 'signatureVersion', isValid: 'signatureValid' },
  v4: {
    place: 'auth',
    code: 'authenticationCode',
    factors: 'authenticationCodeType',
    version: 'authenticationVersion',
    isValid: 'authenticationValid',
  },
} as const

/** Has a request of a phone verified, and returns the verdict. */
export const verifyAt = (bank: Bank, dialect: DialectName, request: HttpRequest, more: Members = {}): Promise<Members> =>
  askReference(bank, dialect, `${WORDS[dialect].place}/verify`, { ...codeOf(dialect, request), ...more })

/** The members of a call that validates a token, from the value of its header. */
export function tokenOf(header: string): Record<string, unknown> {
  const { token_id, token_digest, nonce, timestamp, version } = pairsOf(header)
  return { tokenId: token_id, tokenDigest: token_digest, nonce, timestamp: Number(timestamp), protocolVersion: version }
}
