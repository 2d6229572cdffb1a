// Composes protocol headers as a phone does, and spoils requests for tests (v3 §5.2).
import type { HttpRequest } from './http.ts'

/** The contract for which an app was built. It determines the header names and the scheme word. */
export type Dialect = 'PowerAuth' | 'Svc'

export const headerName = (dialect: Dialect, kind: 'Authorization' | 'Token' | 'Encryption'): string => `X-${dialect}-${kind}`

/** `PowerAuth key="value", ...`; pairs without a value are left out. */
function headerValue(scheme: string, pairs: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(pairs).filter(([, value]) => value !== undefined)
  return `${scheme} ${given.map(([key, value]) => `${key}="${value}"`).join(', ')}`
}

export const headerOf = (
  { dialect = 'PowerAuth', scheme = dialect }: { readonly dialect?: Dialect; readonly scheme?: string },
  kind: 'Authorization' | 'Token' | 'Encryption',
  pairs: Readonly<Record<string, string | undefined>>,
): Record<string, string> => ({ [headerName(dialect, kind)]: headerValue(scheme, pairs) })

/** The request with one pair of its protocol headers replaced, or dropped when there is no value. */
export function withPair<R extends HttpRequest>(request: R, key: string, value: string | undefined): R {
  const spoil = (text: string): string => {
    const pairs = text.slice(text.indexOf(' ') + 1).split(', ')
    const others = pairs.flatMap((pair) =>
      !pair.startsWith(`${key}=`) ? [pair] : value === undefined ? [] : [`${key}="${value}"`],
    )
    return `${text.slice(0, text.indexOf(' '))} ${others.join(', ')}`
  }
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, text]) => [name, name.startsWith('X-') ? spoil(text) : text]),
  )
  return { ...request, headers }
}

/** The request with a header set, or removed when there is no value. */
export function withHeader<R extends HttpRequest>(request: R, name: string, value: string | undefined): R {
  const headers: Record<string, string> = { ...request.headers }
  delete headers[name]
  return { ...request, headers: value === undefined ? headers : { ...headers, [name]: value } }
}

/** The request with other body bytes. */
export const withBody = <R extends HttpRequest>(request: R, body: string | Uint8Array): R => ({
  ...request,
  body: typeof body === 'string' ? Buffer.from(body, 'utf8') : body,
})

/** The request with some members of its JSON body replaced; undefined removes one. */
export function withMembers<R extends HttpRequest>(request: R, members: Readonly<Record<string, unknown>>): R {
  const json = JSON.parse(Buffer.from(request.body).toString('utf8')) as Record<string, unknown>
  return withBody(request, JSON.stringify({ ...json, ...members }))
}

/** A Base64 text with one bit of its last byte turned. */
export function flipBit(base64: string): string {
  const bytes = Buffer.from(base64, 'base64')
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  return bytes.toString('base64')
}

/** The request with one bit of a Base64 member of its body turned. */
export function withFlippedMember<R extends HttpRequest>(request: R, name: string): R {
  const json = JSON.parse(Buffer.from(request.body).toString('utf8')) as Record<string, unknown>
  return withMembers(request, { [name]: flipBit(String(json[name])) })
}
