// Stores the sessions of users who are signed in at the console, in the table console_session. It has a hash of the session's token, never the
// token.
import { sql } from 'kysely'
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
  await sql`
    insert into console_session (session_id, token_hash, username, credential_mac, source, created_at, last_seen_at, expires_at, mac)
    values (${session.sessionId}, ${session.tokenHash}, ${session.username}, ${session.credentialMac}, ${session.source},
      ${session.createdAt}, ${session.lastSeenAt}, ${session.expiresAt}, ${session.mac})`.execute(tx)
}

/** Finds the session of a token, also when it has expired. */
export async function findSession(db: Db, tokenHash: Uint8Array): Promise<SessionRow | undefined> {
  const { rows } = await sql<SessionRow>`select ${COLUMNS} from console_session where token_hash = ${tokenHash}`.execute(db)
  return rows[0]
}

/** Lists sessions whose last use is within `seen` and that end after `at`, newest first. */
export async function listSessions(
  db: Db,
  seen: { readonly after: Date; readonly until: Date },
  at: Date,
): Promise<readonly SessionRow[]> {
  const { rows } = await sql<SessionRow>`
    select ${COLUMNS} from console_session
    where last_seen_at > ${seen.after} and last_seen_at <= ${seen.until} and expires_at > ${at}
    order by created_at desc, session_id limit ${LISTED_MAX}`.execute(db)
  return rows
}

/** Stores the time of the last use, unless a later one is stored. */
export async function touchSession(db: Db, sessionId: string, at: Date): Promise<void> {
  await sql`update console_session set last_seen_at = ${at} where session_id = ${sessionId} and last_seen_at < ${at}`.execute(db)
}

/** Deletes a session and returns its user name; undefined when there was none. */
export async function deleteSession(db: Db, sessionId: string): Promise<string | undefined> {
  const { rows } = await sql<{ username: string }>`
    delete from console_session where session_id = ${sessionId} returning username`.execute(db)
  return rows[0]?.username
}

/** Deletes sessions at their absolute end, also those that were idle for too long before: another process' clock may still count them as in use. */
export const deleteEndedSessions = defineExpiry('console_session', 'session_id')

const COLUMNS = sql`session_id as "sessionId", token_hash as "tokenHash", username, credential_mac as "credentialMac", source,
      created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt", mac`
const LISTED_MAX = 200
