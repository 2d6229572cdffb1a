// The authorization header, and the factors it announces.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { Received } from './receive.ts'

/** The parsed authorization header. Refuses a request without one, and one that cannot be read. */
export function readAuthorization(
  received: Received,
  codes: { readonly headerMissing: ErrorCode; readonly headerMalformed: ErrorCode },
): AuthorizationHeader {
  if (received.headers.authorization === undefined)
    throw new PawlError(codes.headerMissing, { detail: 'no authorization header' })
  return parseAuthorization(received, received.headers.authorization, codes.headerMalformed)
}

/** The parsed authorization header of a request that no code protects, where its envelope may be bound to it; undefined without one. */
export function readAnyAuthorization(received: Received, headerMalformed: ErrorCode): AuthorizationHeader | undefined {
  const { authorization } = received.headers
  return authorization === undefined ? undefined : parseAuthorization(received, authorization, headerMalformed)
}

function parseAuthorization({ protocol, headers }: Received, value: string, code: ErrorCode): AuthorizationHeader {
  const header = protocol.parseAuthorizationHeader(value, headers.schemes)
  if (header === undefined) throw new PawlError(code, { detail: 'malformed authorization header' })
  return header
}

/** The announced factors are refused before anything is computed; counter and failures stay (v3 §10.5). */
export function checkFactors({ factors }: AuthorizationHeader, allowed: readonly Factors[], code: ErrorCode): void {
  if (!allowed.includes(factors)) throw new PawlError(code, { detail: `factors ${factors} are not allowed here` })
}
