// Refuses what a foreign page makes a browser send. A browser adds stored Basic credentials by itself, so they prove no intent.
import type { FastifyRequest } from 'fastify'
import { PawlError } from '../lib/errors.ts'

/**
 * Refuses a write that a browser sent for a page of another site, by `Sec-Fetch-Site` or `Origin`. Besides the origin of the request, that of
 * `publicUrl` counts as pawl's own. Throws REQUEST_INVALID.
 */
export function refuseForeignPage({ headers, host }: FastifyRequest, publicUrl: string | undefined): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw refuse('Sec-Fetch-Site', 'must be same-origin: other sites may not call this API')
  if (headers.origin !== undefined && !isOwn(headers.origin, host, publicUrl))
    throw refuse('Origin', 'must be this server: other sites may not call this API')
}

/**
 * Refuses a write that a page of another site may have sent: by `Sec-Fetch-Site` or `Origin`, and by a content type that a browser sends
 * without a preflight. DELETE may come without body and content type, because a browser always sends a preflight for it. Besides the origin of
 * the request, that of `publicUrl` counts as pawl's own. Throws REQUEST_INVALID.
 */
export function refuseCrossSiteWrite(request: FastifyRequest, publicUrl: string | undefined): void {
  const { method, headers } = request
  if (READS.has(method)) return
  refuseForeignPage(request, publicUrl)
  const type = headers['content-type']
  if (type === undefined ? method !== 'DELETE' : !JSON_TYPE.test(type)) throw refuse('Content-Type', 'must be application/json')
}

/** Whether an origin is pawl's own. The scheme is not compared, because a proxy that ends TLS need not pass it on. */
function isOwn(origin: string, requestHost: string, publicUrl: string | undefined): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  // Parsed with the same scheme, so that a default port is left out of both.
  const own = `${protocol}//${requestHost}`
  const isOurs = URL.canParse(own) && host === new URL(own).host
  return isOurs || (publicUrl !== undefined && host === new URL(publicUrl).host)
}

const refuse = (fieldName: string, hint: string): PawlError =>
  new PawlError('REQUEST_INVALID', { detail: `header ${fieldName} ${hint}`, violations: [{ fieldName, hint }] })

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i
