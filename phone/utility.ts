// Calls /app/init as a mobile app does, and checks answers as the pinning SDKs do (utility §6).
import { type HttpReply, NO_BODY, send } from './http.ts'
import { isEcdsa, random, unb64 } from './v3/crypto.ts'

/** Base64 of 16 random bytes, as SDKs send it. */
export const newChallenge = (): string => Buffer.from(random(16)).toString('base64')

export interface UtilityReply extends HttpReply {
  /** The bytes of the body. */
  readonly body: Buffer
}

/** GET with any headers; a list of values sends the header several times. */
export async function get(
  url: string,
  path: string,
  headers: Record<string, string | string[]> = {},
  method = 'GET',
): Promise<UtilityReply> {
  const reply = await send(url, { method, path, headers, body: NO_BODY })
  return { ...reply, body: Buffer.from(reply.text) }
}

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
