// Stores the sessions of users who are signed in at the console, in the table console_session. It has a hash of the session's token, never the
// token.
import type { Db, Tx } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

export interface SessionRow {
  readonly sessionId: string
  /** Hash of the token, 32 bytes. */
  readonly tokenHash: Buffer
  readonly username: string
  /** MAC of the credential when the session began. */
  readonly credentialMac: Buffer
  /** Address of the browser. */
  readonly source: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  /** The absolute end, however often the session is used. */
  readonly expiresAt: Date
  /** MAC over all members but `lastSeenAt`. */
  readonly mac: Buffer
}

/** Inserts a session. */
export async function insertSession(tx: Tx, session: SessionRow): Promise<void> {
  await tx
    .insertInto('console_session')
    .values({
      session_id: session.sessionId,
      token_hash: session.tokenHash,
      username: session.username,
      credential_mac: session.credentialMac,
      source: session.source,
      created_at: session.createdAt,
      last_seen_at: session.lastSeenAt,
      expires_at: session.expiresAt,
      mac: session.mac,
    })
    .execute()
}

/** Finds the session of a token, also when it has expired. */
export const findSession = (db: Db, tokenHash: Uint8Array): Promise<SessionRow | undefined> =>
  db.selectFrom('console_session').select(columns).where('token_hash', '=', Buffer.from(tokenHash)).executeTakeFirst()

/** Lists sessions whose last use is within `seen` and that end after `at`, newest first. */
export const listSessions = (db: Db, seen: { readonly after: Date; readonly until: Date }, at: Date): Promise<SessionRow[]> =>
  db
    .selectFrom('console_session')
    .select(columns)
    .where('last_seen_at', '>', seen.after)
    .where('last_seen_at', '<=', seen.until)
    .where('expires_at', '>', at)
    .orderBy('created_at', 'desc')
    .orderBy('session_id')
    .limit(LISTED_MAX)
    .execute()

/** Stores the time of the last use, unless a later one is stored. */
export async function touchSession(db: Db, sessionId: string, at: Date): Promise<void> {
  await db
    .updateTable('console_session')
    .set({ last_seen_at: at })
    .where('session_id', '=', sessionId)
    .where('last_seen_at', '<', at)
    .execute()
}

/** Deletes a session and returns its user name; undefined when there was none. */
export async function deleteSession(db: Db, sessionId: string): Promise<string | undefined> {
  const deleted = await db
    .deleteFrom('console_session')
    .where('session_id', '=', sessionId)
    .returning('username')
    .executeTakeFirst()
  return deleted?.username
}

/** Deletes sessions at their absolute end, also those that were idle for too long before: another process' clock may still count them as in use. */
export const deleteEndedSessions = defineExpiry('console_session', 'session_id')

const columns = [
  'session_id as sessionId',
  'token_hash as tokenHash',
  'username',
  'credential_mac as credentialMac',
  'source',
  'created_at as createdAt',
  'last_seen_at as lastSeenAt',
  'expires_at as expiresAt',
  'mac',
] as const
const LISTED_MAX = 200
