// The table console_session: who is signed in at the console. The token of a session is never here, only its hash.
import type { Db, Tx } from '../database/database.ts'
import { defineExpiry } from '../database/bulk-statement.ts'

export interface SessionRow {
  readonly sessionId: string
  /** Of the token, 32 bytes. */
  readonly tokenHash: Buffer
  readonly username: string
  /** Of the credential at the beginning. */
  readonly credentialMac: Buffer
  /** Address of the browser. */
  readonly source: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  /** The absolute end. */
  readonly expiresAt: Date
  /** Over all of this but the last use. */
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

/** The session of a token, whether or not it has run out. */
export const findSession = (db: Db, tokenHash: Uint8Array): Promise<SessionRow | undefined> =>
  db.selectFrom('console_session').select(columns).where('token_hash', '=', Buffer.from(tokenHash)).executeTakeFirst()

/** Sessions that were last used within `seen` and end after `at`, newest first. */
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

/** Moves the time of the last use; never back. */
export async function touchSession(db: Db, sessionId: string, at: Date): Promise<void> {
  await db
    .updateTable('console_session')
    .set({ last_seen_at: at })
    .where('session_id', '=', sessionId)
    .where('last_seen_at', '<', at)
    .execute()
}

/** Deletes a session; gives whose it was, undefined when there was none. */
export async function deleteSession(db: Db, sessionId: string): Promise<string | undefined> {
  const deleted = await db
    .deleteFrom('console_session')
    .where('session_id', '=', sessionId)
    .returning('username')
    .executeTakeFirst()
  return deleted?.username
}

/** Deletes sessions that ended; those that only lie idle, or would by another clock, follow at their absolute end. */
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
