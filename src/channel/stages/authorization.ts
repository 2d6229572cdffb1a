// The authorization header, and the factors it announces.
import { type ErrorCode, PawlError } from '../../lib/errors.ts'
import type { AuthorizationHeader, Factors } from '../../protocol/protocol.ts'
import type { Received } from './receive.ts'

/** The parsed authorization header. Throws `malformed` for one that cannot be parsed, and refuses a request without one. */
export function readAuthorization(received: Received, malformed: ErrorCode, missing = malformed): AuthorizationHeader {
  const header = readAnyAuthorization(received, malformed)
  if (header === undefined) throw new PawlError(missing, { detail: 'no authorization header' })
  return header
}

/** The parsed authorization header of a request without a code, to whose values its envelope may be bound; undefined without a header. */
export function readAnyAuthorization({ protocol, headers }: Received, malformed: ErrorCode): AuthorizationHeader | undefined {
  const { authorization, schemes } = headers
  if (authorization === undefined) return undefined
  const header = protocol.parseAuthorizationHeader(authorization, schemes)
  if (header === undefined) throw new PawlError(malformed, { detail: 'malformed authorization header' })
  return header
}

/** Refuses factors that the endpoint does not take, before anything is computed. Counter and failures stay (v3 §10.5). */
export function checkFactors({ factors }: AuthorizationHeader, allowed: readonly Factors[], code: ErrorCode): void {
  if (!allowed.includes(factors)) throw new PawlError(code, { detail: `factors ${factors} are not allowed here` })
}
