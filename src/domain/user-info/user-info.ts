// Claims about the owner of an activation: those that the bank stored, and those that a provider of the bank answers (v3 §13).
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import { describeUncarried, findUncarried } from '../../lib/json.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { findUserClaims, storeUserClaims } from '../../storage/user/claims.ts'
import type { HttpProvider } from './http-provider.ts'
import { type DomainParts, type KeyParts, places, unlessAltered } from '../secrets/secrets.ts'

/** A JSON object. */
export type Claims = Readonly<Record<string, unknown>>

/** Whose claims are asked for. */
interface Subject {
  readonly applicationId: string
  readonly userId: string
  readonly activationId: string
  /** sealed; what the bank stored, null when that is nothing, undefined where it is to be read */
  readonly storedClaims?: Uint8Array | null | undefined
}

/** A source of claims. It returns an empty object when there are none, and throws OutboundError when the source does not answer properly. */
export interface UserInfoProvider {
  readonly readClaims: (subject: Subject) => Promise<Claims>
}

/** The stored claims; with `ask` also those that a server of the bank answers, which stand above stored ones of the same name. */
export function createUserInfoProvider(parts: KeyParts, ask: HttpProvider | undefined): UserInfoProvider {
  const readStored = async ({ applicationId, userId, storedClaims }: Subject) =>
    storedClaims === undefined
      ? readStoredClaims(parts, applicationId, userId)
      : openClaims(parts, applicationId, userId, storedClaims ?? undefined)
  if (ask === undefined) return { readClaims: async (subject) => (await readStored(subject)) ?? {} }
  return {
    readClaims: async (subject) => {
      const { applicationId, userId, activationId } = subject
      const stored = await readStored(subject)
      const asked = await ask({ applicationId, userId, activationId })
      const uncarried = describeUncarried(asked)
      if (uncarried !== undefined) throw new OutboundError(`PAWL_USER_INFO_URL: the claim ${uncarried}`)
      return { ...stored, ...asked }
    },
  }
}

/** The claims the bank stored about a user; undefined when there are none. */
export async function readStoredClaims(
  { db, recordKeys }: Pick<KeyParts, 'db' | 'recordKeys'>,
  applicationId: string,
  userId: string,
): Promise<Claims | undefined> {
  return openClaims({ recordKeys }, applicationId, userId, await findUserClaims(db, applicationId, userId))
}

/** Claims as the bank stored them; undefined where there are none, and where somebody altered them in the database. */
export function openClaims(
  { recordKeys }: Pick<KeyParts, 'recordKeys'>,
  applicationId: string,
  userId: string,
  sealed: Uint8Array | undefined,
): Claims | undefined {
  const opened = sealed && unlessAltered(() => recordKeys.open(places.userClaims(applicationId, userId), sealed))
  return opened && (JSON.parse(fromUtf8(opened)) as Claims)
}

/**
 * Stores claims in place of earlier ones. Throws REQUEST_INVALID for reserved names, for numbers that would be rounded on their way to phones,
 * and for more than 16 KiB.
 */
export async function writeClaims(parts: KeyParts, applicationId: string, userId: string, claims: Claims): Promise<void> {
  const reserved = RESERVED.filter((name) => Object.hasOwn(claims, name))
  const uncarried = findUncarried(claims)
  const json = utf8(JSON.stringify(claims))
  const violations = [
    ...reserved.map((fieldName) => ({ fieldName, hint: 'is set by the server' })),
    ...(uncarried === undefined ? [] : [{ fieldName: uncarried.path.join('.'), hint: uncarried.problem }]),
    ...(json.length > CLAIMS_BYTES_MAX ? [{ fieldName: 'body', hint: `must be at most ${CLAIMS_BYTES_MAX} bytes of JSON` }] : []),
  ]
  if (violations.length > 0) throw new PawlError('REQUEST_INVALID', { detail: 'claims that cannot be stored', violations })
  await storeUserClaims(parts.db, {
    applicationId,
    userId,
    claims: parts.recordKeys.seal(places.userClaims(applicationId, userId), json),
    at: new Date(parts.platform.now()),
  })
}

interface UserInfo {
  readonly [claim: string]: unknown
  readonly sub: string
  /** UUID of this answer. */
  readonly jti: string
  /** Seconds since 1970-01-01 UTC. */
  readonly iat: number
}

/** The answer of user/info. Throws USER_INFO_FAILED when the provider fails. */
export async function readUserInfo(
  provider: UserInfoProvider,
  parts: Pick<DomainParts, 'platform' | 'events'>,
  subject: Subject,
): Promise<UserInfo> {
  try {
    return toUserInfo(parts, subject, await provider.readClaims(subject))
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    parts.events.userInfoFailed({ activationId: subject.activationId, err: cause })
    throw new PawlError('USER_INFO_FAILED', { detail: 'no claims from the provider', cause })
  }
}

/**
 * The claims for the answer of activation/create; undefined when there are none, or when the provider fails, because the phone is bound all the
 * same.
 */
export async function readUserInfoOfNew(
  provider: UserInfoProvider,
  parts: Pick<DomainParts, 'platform' | 'events'>,
  subject: Subject,
): Promise<UserInfo | undefined> {
  try {
    const claims = await provider.readClaims(subject)
    return Object.keys(claims).some((name) => !RESERVED.includes(name)) ? toUserInfo(parts, subject, claims) : undefined
  } catch (err) {
    parts.events.userInfoFailed({ activationId: subject.activationId, err })
    return undefined
  }
}

/** Adds the members that identify the answer, which are always the server's own. */
const toUserInfo = ({ platform }: Pick<DomainParts, 'platform'>, { userId }: Subject, claims: Claims): UserInfo => ({
  ...claims,
  sub: userId,
  jti: platform.uuid(),
  iat: Math.floor(platform.now() / 1000),
})

const RESERVED: readonly string[] = ['sub', 'jti', 'iat']
const CLAIMS_BYTES_MAX = 16 * 1024
