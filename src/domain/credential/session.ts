// Begins, reads and ends sessions of the console. A login by password gives a random token, which ends with its time or with its credential. The
// console calls the cloud API in its caller's name with a ticket instead of a password; all checks of the API apply.
import type { KeyObject } from 'node:crypto'
import { hmac, importHmacKey, sha256 } from '../../crypto/hash.ts'
import { toBase64Url } from '../../lib/base64.ts'
import { equalConstantTime, utf8 } from '../../lib/bytes.ts'
import { PawlError } from '../../lib/errors.ts'
import type { Platform } from '../../lib/platform.ts'
import { insertAdminEvent, lockAdministration } from '../../storage/credential/admin-events.ts'
import {
  deleteSession,
  findSession,
  insertSession,
  listSessions,
  type SessionRow,
  touchSession,
} from '../../storage/credential/console-sessions.ts'
import { findCredential } from '../../storage/credential/credentials.ts'
import { inTransaction, type Pool, type Tx } from '../../storage/database/database.ts'
import { authenticateRow, type DecidingRow, isRowAuthentic } from '../secrets/row-mac.ts'
import type { Caller, Credentials } from './credential.ts'
import type { Login } from './login-gate.ts'
import { isCredentialAuthentic } from './mac.ts'
import { isAdmitted } from './password-login.ts'
import { hasEnded, usablePasswords } from './password.ts'

export interface SessionParts {
  readonly db: Pool
  readonly platform: Platform
  readonly credentials: Credentials
  readonly installationKeys: { readonly credentialMac: KeyObject }
  readonly settings: { readonly consoleIdleSeconds: number; readonly consoleSessionSeconds: number }
}

export interface Session {
  readonly sessionId: string
  readonly caller: Caller
  /** The token in the forms of this session, derived from the session's token. The database has neither. */
  readonly formToken: string
}

/** A session for the list of them. */
export type ListedSession = Omit<SessionRow, 'tokenHash' | 'credentialMac' | 'mac'>

/**
 * Checks a password through the login gate and begins a session. Returns the token of the session, which nothing else shows. The audit log of
 * administrators records the sign-in. Throws as Credentials.verify does. Throws ROLE_FORBIDDEN unless the credential is an administrator, or
 * `read-only` without application.
 */
export async function beginSession(parts: SessionParts, login: Login, password: string): Promise<string> {
  const { db, platform, settings } = parts
  const caller = await parts.credentials.verify(login, password)
  if (!mayUseConsole(caller)) throw new PawlError('ROLE_FORBIDDEN', { detail: 'the credential is one of a back end' })
  const token = platform.randomBytes(32)
  const now = platform.now()
  await inTransaction(db, async (tx) => {
    await lockAdministration(tx)
    const credential = await findCredential(tx, caller.username)
    const shown = usablePasswords(credential, now).find(({ passwordId }) => passwordId === caller.passwordId)
    // The credential was removed or got another password after the check, or it has no MAC.
    if (credential === undefined || credential.mac === null || shown === undefined) throw new PawlError('CREDENTIALS_INVALID')
    const ends = [credential.expiresAt, shown.expiresAt].map((end) => end?.getTime() ?? Number.POSITIVE_INFINITY)
    const row = {
      sessionId: platform.uuid(),
      tokenHash: Buffer.from(sha256(token)),
      username: caller.username,
      credentialMac: credential.mac,
      source: login.source,
      createdAt: new Date(now),
      lastSeenAt: new Date(now),
      // A session ends at the latest with its password, which a newer one may have replaced.
      expiresAt: new Date(Math.min(now + settings.consoleSessionSeconds * 1000, ...ends)),
    }
    const mac = Buffer.from(authenticateRow(parts.installationKeys.credentialMac, decidingRow(row)))
    await insertSession(tx, { ...row, mac })
    await record(parts, tx, caller.username, 'console sign-in', caller.username)
  })
  return toBase64Url(token)
}

/**
 * Reads the session of a token. Undefined when it does not exist, was idle for too long, or is over. Undefined when the clock was set back since
 * its last use, when its credential has changed since the sign-in, and when the credential may not be used from `source`. `isUse`: a person did
 * something, so the idle time begins anew.
 */
export async function readSession(
  parts: SessionParts,
  { token, source, isUse }: { readonly token: string; readonly source: string; readonly isUse: boolean },
): Promise<Session | undefined> {
  const { db, platform, settings, installationKeys } = parts
  const bytes = Buffer.from(token, 'base64url')
  const row = await findSession(db, sha256(bytes))
  const now = platform.now()
  if (row === undefined || hasEnded(row.expiresAt, now)) return undefined
  if (!isRowAuthentic(installationKeys.credentialMac, decidingRow(row), row.mac)) return undefined
  const idleMs = now - row.lastSeenAt.getTime()
  // The last use is in the future: the clock was set back, and nobody knows for how long the session was idle.
  if (idleMs >= settings.consoleIdleSeconds * 1000 || idleMs < -SET_BACK_MS) return undefined
  const credential = await findCredential(db, row.username)
  if (credential?.mac === undefined || credential.mac === null || !equalConstantTime(credential.mac, row.credentialMac))
    return undefined
  if (!isCredentialAuthentic(installationKeys.credentialMac, credential) || credential.isDisabled) return undefined
  if (!isAdmitted(credential, { source })) return undefined
  if (hasEnded(credential.expiresAt, now)) return undefined
  if (isUse && now - row.lastSeenAt.getTime() >= TOUCH_MS) await touchSession(db, row.sessionId, new Date(now))
  const { username, role, applicationId, rights } = credential
  return { sessionId: row.sessionId, caller: { username, role, applicationId, rights }, formToken: deriveFormToken(bytes) }
}

/** Sessions that still last, newest first. */
export function listLiveSessions({ db, platform, settings }: SessionParts): Promise<readonly ListedSession[]> {
  const now = platform.now()
  const seen = { after: new Date(now - settings.consoleIdleSeconds * 1000), until: new Date(now + SET_BACK_MS) }
  return listSessions(db, seen, new Date(now))
}

/** Ends any session. The audit log of administrators names `by`. A session that has ended already is no error. */
export async function endSession(parts: SessionParts, sessionId: string, by: string): Promise<void> {
  await inTransaction(parts.db, async (tx) => {
    await lockAdministration(tx)
    const username = await deleteSession(tx, sessionId)
    if (username !== undefined) await record(parts, tx, by, 'console sign-out', username)
  })
}

/** Whether a form carries the token of its session. */
export const isFormTokenOf = ({ formToken }: Session, given: string): boolean => equalConstantTime(utf8(formToken), utf8(given))

/** The columns under the MAC of a session. Without the MAC, anybody who can write to the database could become an administrator. */
const decidingRow = (row: Omit<SessionRow, 'mac' | 'lastSeenAt'>): DecidingRow => ({
  table: 'console_session',
  fields: [
    row.sessionId,
    row.tokenHash.toString('hex'),
    row.username,
    row.credentialMac.toString('hex'),
    row.source,
    String(row.createdAt.getTime()),
    String(row.expiresAt.getTime()),
  ],
})

const mayUseConsole = ({ role, applicationId }: Caller): boolean =>
  role === 'admin' || (role === 'read-only' && applicationId === null)

const deriveFormToken = (token: Uint8Array): string => toBase64Url(hmac(importHmacKey(token), utf8('console form')))

const record = ({ platform }: SessionParts, tx: Tx, username: string, action: string, of: string): Promise<void> =>
  insertAdminEvent(tx, {
    username,
    action,
    target: `session of ${of}`,
    before: null,
    after: null,
    occurredAt: new Date(platform.now()),
  })

/** The clocks of the processes on one database differ by much less than this. */
const SET_BACK_MS = 60_000
// The time of the last use is written only after so long, not with each request.
const TOUCH_MS = 20_000

export interface Tickets {
  /** Returns a random text of 128 bits that represents the caller in one call. */
  readonly issue: (caller: Caller) => string
  /** Returns the caller of a ticket, and uses the ticket up; undefined for any other text. */
  readonly redeem: (ticket: string) => Caller | undefined
  /** Removes the ticket of a call that ended before it was redeemed. */
  readonly drop: (ticket: string) => void
}

/** Creates the tickets of one process. They are only in its memory, only for the time of a call, and never leave the process. */
export function createTickets(platform: Pick<Platform, 'randomBytes'>): Tickets {
  const issued = new Map<string, Caller>()
  return {
    issue: (caller) => {
      const ticket = toBase64Url(platform.randomBytes(16))
      issued.set(ticket, caller)
      return ticket
    },
    redeem: (ticket) => {
      const caller = issued.get(ticket)
      issued.delete(ticket)
      return caller
    },
    drop: (ticket) => void issued.delete(ticket),
  }
}

/** The header that carries a ticket, instead of `Authorization`. */
export const TICKET_HEADER = 'x-pawl-ticket'
