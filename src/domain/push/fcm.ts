// Sends pushes to Android: HTTP v1 of Firebase Cloud Messaging, with an access token for a service account (mobile-token §7.1).
import { importPKCS8 } from 'jose/key/import'
import { SignJWT } from 'jose/jwt/sign'
import { StartError } from '../../lib/errors.ts'
import { JsonFault, isJsonObject, parseForeignObject } from '../../lib/json.ts'
import { OF_OPERATOR, OutboundError, type OutboundAnswer, sendOutbound } from '../../lib/outbound.ts'
import type { Platform } from '../../lib/platform.ts'
import {
  PUSH_TIMEOUT_MS,
  type PushAddress,
  type PushFailure,
  type PushMessage,
  type PushOutcome,
  type PushSender,
} from './push.ts'

export interface FcmSettings {
  readonly account: {
    readonly projectId: string
    readonly clientEmail: string
    /** PEM, PKCS #8. */
    readonly privateKey: string
    readonly tokenUrl: string
  }
  readonly url: string
}

/** Creates the sender for Google. Throws StartError when the key of the account is not a private key of RSA. */
export async function createFcmSender({ account, url }: FcmSettings, platform: Pick<Platform, 'now'>): Promise<PushSender> {
  const access = await createAccess(account, platform)
  const send = async (message: PushMessage, { token }: PushAddress): Promise<PushOutcome> => {
    const shown = await access.show()
    if ('reason' in shown) return shown
    const answer = await post(`${new URL(url).origin}/v1/projects/${account.projectId}/messages:send`, {
      authorization: `Bearer ${shown.token}`,
      body: composeBody(message, token, platform.now()),
    })
    const outcome = judge(answer)
    if (answer.status === 401 && !('isFinal' in outcome)) access.forget(shown.token)
    return outcome
  }
  return {
    url,
    send,
    findProblem: async () => {
      const shown = await access.show()
      return 'reason' in shown ? shown.reason : undefined
    },
    close: () => undefined,
  }
}

const composeBody = ({ data, collapseId, until }: PushMessage, token: string, now: number): string => {
  const ttl = `${Math.max(0, Math.floor((until - now) / 1000))}s`
  return JSON.stringify({ message: { token, data, android: { priority: 'HIGH', ttl, collapse_key: collapseId } } })
}

const post = (url: string, { authorization, body }: { authorization?: string; body: string }): Promise<OutboundAnswer> =>
  sendOutbound({
    url,
    method: 'POST',
    headers: {
      'content-type': authorization === undefined ? 'application/x-www-form-urlencoded' : 'application/json',
      accept: 'application/json',
      'user-agent': 'pawl',
      ...(authorization !== undefined && { authorization }),
    },
    body,
    timeoutMs: PUSH_TIMEOUT_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
    rules: OF_OPERATOR,
  })

function judge({ status, headers, body }: OutboundAnswer): PushOutcome {
  if (status === 200) return { received: status }
  const { says, isOfGoogle } = readRefusal(body)
  const reason = says === undefined ? `HTTP ${status}` : `HTTP ${status} ${says}`
  const failure = { reason, status, retryAfter: readHeader(headers['retry-after']) }
  // A 404 without more detail may come from a deleted project, and one that Google did not write comes from a wrong address. Neither forgets a
  // token.
  if (says === 'UNREGISTERED') return { ...failure, isOfOne: true, isGone: true }
  const isOfOne = isOfGoogle && (status === 400 || status === 404 || OF_ONE.has(says ?? ''))
  return { ...failure, ...(isOfOne && { isOfOne, isFinal: true }) }
}

/**
 * Refusals with status 401 or 403 that concern one phone: its token belongs to another project, or Google lacks credentials for the service that
 * reaches the phone.
 */
const OF_ONE: ReadonlySet<string> = new Set(['SENDER_ID_MISMATCH', 'THIRD_PARTY_AUTH_ERROR'])

/** Reads `errorCode` of FCM, or `status`, which every API of Google has. */
function readRefusal(body: Uint8Array): { says: string | undefined; isOfGoogle: boolean } {
  const error = readObject(body)?.['error']
  if (!isJsonObject(error)) return { says: undefined, isOfGoogle: false }
  const details: readonly unknown[] = Array.isArray(error['details']) ? error['details'] : []
  const codes = details.map((detail) => (isJsonObject(detail) ? detail['errorCode'] : undefined))
  return { says: [...codes, error['status']].find(isWord), isOfGoogle: true }
}

const isWord = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z_]{1,64}$/.test(value)

const readHeader = (value: string | string[] | undefined): string | undefined => (typeof value === 'string' ? value : undefined)

function readObject(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    return parseForeignObject(body)
  } catch (error) {
    if (error instanceof JsonFault) return undefined
    throw error
  }
}

/** Creates the source of access tokens. All pushes share one until shortly before its end (RFC 7523 §2.1). */
async function createAccess({ clientEmail, privateKey, tokenUrl }: FcmSettings['account'], { now }: Pick<Platform, 'now'>) {
  const signingKey = await importPKCS8(privateKey, 'RS256').catch(() => {
    throw new StartError('PAWL_FCM_SERVICE_ACCOUNT: private_key is not a private key of RSA')
  })
  type Shown = PushFailure | { readonly token: string; readonly expiresAt: number }
  let known: { readonly token: string; readonly expiresAt: number } | undefined
  let asking: Promise<Shown> | undefined

  const ask = async (): Promise<Shown> => {
    const seconds = Math.floor(now() / 1000)
    const assertion = await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setIssuer(clientEmail)
      .setAudience(tokenUrl)
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + ASSERTION_SECONDS)
      .sign(signingKey)
    const body = new URLSearchParams({ grant_type: GRANT_TYPE, assertion }).toString()
    const answer = await post(tokenUrl, { body })
    const { access_token: token, expires_in: lifetime, error } = readObject(answer.body) ?? {}
    const { host } = new URL(tokenUrl)
    if (answer.status !== 200)
      return {
        reason: `no access token: ${host} answered HTTP ${answer.status}${isWord(error) ? ` ${error}` : ''}`,
        status: answer.status,
        retryAfter: readHeader(answer.headers['retry-after']),
      }
    if (typeof token !== 'string' || !/^[\x21-\x7E]{1,4096}$/.test(token))
      throw new OutboundError(`${host} answered without an access token`)
    const lifetimeMs = (typeof lifetime === 'number' ? lifetime : 0) * 1000
    known = { token, expiresAt: now() + Math.max(0, lifetimeMs - RENEWED_BEFORE_MS) }
    return known
  }

  return {
    show: (): Promise<Shown> => {
      if (known !== undefined && known.expiresAt > now()) return Promise.resolve(known)
      asking ??= ask().finally(() => {
        asking = undefined
      })
      return asking
    },
    /** Drops this token. A token that was fetched since stays. */
    forget: (token: string) => {
      if (known?.token === token) known = undefined
    },
  }
}

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ASSERTION_SECONDS = 3_600
const RENEWED_BEFORE_MS = 300_000
const ANSWER_BYTES_MAX = 16_384
