// The back-end API of the reference (cloud §15): what a Spring library makes of a phone's request, and calls with it.
import { type HttpReply, type HttpRequest, member, sendJson } from '../../phone/http.ts'
import { type Bank, basicAuthorization } from './bank.ts'
import { headerOf, RESOURCE } from './door.ts'
import { expectOk } from './world.ts'

export type DialectName = 'v3' | 'v4'
export const DIALECTS: readonly DialectName[] = ['v3', 'v4']

type Members = Readonly<Record<string, unknown>>

/** Any call; `request` is the request object. */
export const callReference = (bank: Bank, dialect: DialectName, path: string, requestObject: unknown): Promise<HttpReply> =>
  sendJson(bank.url, 'POST', `/rest/${dialect}/${path}`, { requestObject }, basicAuthorization(bank.credential))

/** The response object; throws when the answer is an error. */
export const askReference = async (bank: Bank, dialect: DialectName, path: string, requestObject: unknown): Promise<Members> =>
  member(expectOk(await callReference(bank, dialect, path, requestObject)).json, 'responseObject') as Members

/** Names and values of a protocol header. */
export const pairsOf = (header: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]))

/** What a request to verify is, in the words of a dialect. */
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

/** Words of a dialect. */
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

/** The verdict on a request of a phone. */
export const verifyAt = (bank: Bank, dialect: DialectName, request: HttpRequest, more: Members = {}): Promise<Members> =>
  askReference(bank, dialect, `${WORDS[dialect].place}/verify`, { ...codeOf(dialect, request), ...more })

/** What a request to validate a token is, of the value of its header. */
export function tokenOf(header: string): Record<string, unknown> {
  const { token_id, token_digest, nonce, timestamp, version } = pairsOf(header)
  return { tokenId: token_id, tokenDigest: token_digest, nonce, timestamp: Number(timestamp), protocolVersion: version }
}
