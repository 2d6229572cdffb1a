// The protocol headers of a request in either spelling, and the dialect that the spelling chooses for the answer.
import type { IncomingHttpHeaders } from 'node:http'

/** The spelling of headers: `svc` is that of the API contract, `powerauth` that of the published SDKs, also when no header was sent. */
export type Dialect = 'svc' | 'powerauth'

export interface ProtocolHeaders {
  readonly dialect: Dialect
  /** The scheme words that the dialect accepts at the start of a value. */
  readonly schemes: readonly string[]
  readonly authorization: string | undefined
  readonly token: string | undefined
  readonly encryption: string | undefined
  /** Whether one header came in both spellings with different values, or two headers in different spellings. */
  readonly isMalformed: boolean
}

/** Reads the headers; values are not parsed yet. */
export function readProtocolHeaders(headers: IncomingHttpHeaders): ProtocolHeaders {
  const spellings = new Set<Dialect>()
  let conflicts = false
  const read = (name: string): string | undefined => {
    const svc = headers[`x-svc-${name}`]
    const powerAuth = headers[`x-powerauth-${name}`]
    if (svc !== undefined && powerAuth !== undefined) {
      conflicts ||= svc !== powerAuth
      return String(powerAuth)
    }
    const value = svc ?? powerAuth
    if (value === undefined) return undefined
    spellings.add(svc === undefined ? 'powerauth' : 'svc')
    return String(value)
  }
  const [authorization, token, encryption] = [read('authorization'), read('token'), read('encryption')]
  const isMalformed = conflicts || spellings.size > 1
  const dialect: Dialect = !isMalformed && spellings.has('svc') ? 'svc' : 'powerauth'
  return { dialect, schemes: SCHEMES[dialect], authorization, token, encryption, isMalformed }
}

const SCHEMES: Record<Dialect, readonly string[]> = { svc: ['Svc', 'PowerAuth'], powerauth: ['PowerAuth'] }
