// Calls /app/init as a mobile app does, and checks answers as the pinning SDKs do (utility §6).
import { request as openRequest } from 'node:http'
import type { HttpReply } from './http.ts'
import { isEcdsa, random, unb64 } from './v3/crypto.ts'

/** Base64 of 16 random bytes, as SDKs send it. */
export const newChallenge = (): string => Buffer.from(random(16)).toString('base64')

export interface UtilityReply extends HttpReply {
  /** The bytes of the body, unchanged. */
  readonly body: Buffer
}

/** GET with any headers; a list of values sends the header several times. */
export function get(
  url: string,
  path: string,
  headers: Record<string, string | string[]> = {},
  method = 'GET',
): Promise<UtilityReply> {
  return new Promise((resolve, reject) => {
    const outgoing = openRequest(url + path, { method, headers }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const body = Buffer.concat(chunks)
        const text = body.toString()
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body, text, json: JSON.parse(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

/** GET /app/init of an application. */
export const getInit = (
  url: string,
  appName: string,
  {
    challenge = newChallenge(),
    more = '',
    headers = {},
  }: { challenge?: string; more?: string; headers?: Record<string, string> } = {},
): Promise<UtilityReply> =>
  get(url, `/app/init?appName=${encodeURIComponent(appName)}${more}`, { 'X-Cert-Pinning-Challenge': challenge, ...headers })

/** Whether an SDK accepts an answer. A missing signature counts as wrong. */
export function isGenuine(
  publicKey: string,
  challenge: string,
  { headers, body }: Pick<UtilityReply, 'headers' | 'body'>,
): boolean {
  const header = headers['x-cert-pinning-signature']
  if (typeof header !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(header) || header.length % 4 !== 0) return false
  return isEcdsa(unb64(publicKey), Buffer.concat([Buffer.from(`${challenge}&`, 'utf8'), body]), unb64(header))
}
