// Reads claims about the owner of an activation: claims that the bank stored, and claims from a provider of the bank (v3 §13).
import { fromUtf8, utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import { describeUncarried, findUncarried } from '../../lib/json.ts'
import { OutboundError } from '../../lib/outbound.ts'
import { findUserClaims, storeUserClaims } from '../../storage/user/claims.ts'
import type { HttpProvider } from './http-provider.ts'
import { type DomainParts, type KeyParts, places, unlessAltered } from '../secrets/secrets.ts'

/** A JSON object. */
export type Claims = Readonly<Record<string, unknown>>

/** The user and the activation whose claims are read. */
interface Subject {
  readonly applicationId: string
  readonly userId: string
  readonly activationId: string
  /** The claims that the bank stored, sealed. Null when there are none, undefined when they are still to be read. */
  readonly storedClaims?: Uint8Array | null | undefined
}

/** `userInfoProvider` asks the bank's server for claims, if one is configured. Its claims replace stored ones of the same name. */
type Sources = DomainParts & { readonly userInfoProvider: HttpProvider | undefined }

/** Reads claims from both sources; an empty object when there are none. Throws OutboundError when the server does not answer properly. */
async function readClaims(parts: Sources, { applicationId, userId, activationId, storedClaims }: Subject): Promise<Claims> {
  const stored =
    storedClaims === undefined
      ? await readStoredClaims(parts, applicationId, userId)
      : openClaims(parts, applicationId, userId, storedClaims ?? undefined)
  const asked = await parts.userInfoProvider?.(activationId, { applicationId, userId, activationId })
  const uncarried = asked && describeUncarried(asked)
  if (uncarried !== undefined) throw new OutboundError(`PAWL_USER_INFO_URL: the claim ${uncarried}`)
  return { ...stored, ...asked }
}

/** Reads the claims that the bank stored about a user; undefined when there are none. */
export async function readStoredClaims(
  { db, recordKeys }: Pick<KeyParts, 'db' | 'recordKeys'>,
  applicationId: string,
  userId: string,
): Promise<Claims | undefined> {
  return openClaims({ recordKeys }, applicationId, userId, await findUserClaims(db, applicationId, userId))
}

/** Opens stored claims. Undefined when there are none, and when somebody altered them in the database. */
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
 * Stores claims in place of earlier ones. Throws REQUEST_INVALID for reserved names, for numbers that phones would read rounded, and for more than
 * 16 KiB.
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

/** Composes the answer of user/info. Throws USER_INFO_FAILED when the provider fails. */
export async function readUserInfo(parts: Sources, subject: Subject): Promise<UserInfo> {
  try {
    return toUserInfo(parts, subject, await readClaims(parts, subject))
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    parts.events.userInfoFailed({ activationId: subject.activationId, err: cause })
    throw new PawlError('USER_INFO_FAILED', { detail: 'no claims from the provider', cause })
  }
}

/**
 * Reads the claims for the answer of activation/create. Undefined when there are none, and when the provider fails: the phone is bound in any case.
 */
export async function readUserInfoOfNew(parts: Sources, subject: Subject): Promise<UserInfo | undefined> {
  try {
    const claims = await readClaims(parts, subject)
    return Object.keys(claims).some((name) => !RESERVED.includes(name)) ? toUserInfo(parts, subject, claims) : undefined
  } catch (err) {
    parts.events.userInfoFailed({ activationId: subject.activationId, err })
    return undefined
  }
}

/** Adds the members that identify the answer. They replace claims of these names. */
const toUserInfo = ({ platform }: Pick<DomainParts, 'platform'>, { userId }: Subject, claims: Claims): UserInfo => ({
  ...claims,
  sub: userId,
  jti: platform.uuid(),
  iat: Math.floor(platform.now() / 1000),
})

const RESERVED: readonly string[] = ['sub', 'jti', 'iat']
const CLAIMS_BYTES_MAX = 16 * 1024
