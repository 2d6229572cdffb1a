// Checks whether a PostgreSQL suits pawl. The start refuses a database that would give wrong answers, and the doctor reports the whole list.
import { sql } from 'kysely'
import { StartError } from '../../lib/errors.ts'
import { type Database, type Db, onlyRow } from './database.ts'
import { SESSION_SETTINGS } from './session-settings.ts'

export interface Unmet {
  readonly requirement: 'encoding' | 'settings' | 'commits' | 'writes' | 'connections'
  readonly says: string
  /** The remedy, for people to read. */
  readonly todo: string
}

/** Requirements without which pawl does not start. A server that misses others serves what it can. */
const REFUSED: readonly Unmet['requirement'][] = ['encoding', 'settings']

/** Throws StartError with a message of one line when pawl cannot work on this database. */
export async function requireDatabase({ db, kind }: Pick<Database, 'db' | 'kind'>): Promise<void> {
  if (kind === 'embedded') return
  const unmet = (await findUnmet(db)).find(({ requirement }) => REFUSED.includes(requirement))
  if (unmet !== undefined) throw new StartError(`${unmet.says}; ${unmet.todo}`)
}

/**
 * Returns the unmet requirements. `connections` is the number that all processes may open; undefined when a pooler opens the server connections.
 */
export async function findUnmet(db: Db, connections = 0): Promise<readonly Unmet[]> {
  const server = await readServer(db)
  const wrong = await findWrongSettings(db)
  const { role, encoding, room } = server
  const found: (Unmet | false)[] = [
    encoding !== 'UTF8' && {
      requirement: 'encoding',
      says: `the encoding of the database is ${encoding}`,
      todo: `make it anew: create database ... encoding 'UTF8' template template0`,
    },
    wrong.length > 0 && {
      requirement: 'settings',
      says: `sessions of the role ${role} have ${wrong.map(({ name, value }) => `${name} = '${value}'`).join(', ')}`,
      todo: `a pooler in transaction mode does not pass on what pawl sets; ${wrong
        .map(({ name, expected }) => `alter role ${role} set ${name} = '${expected}'`)
        .join('; ')}, and have the pooler connect again`,
    },
    !server.isDurable && {
      requirement: 'commits',
      says: `fsync is ${server.fsync}, full_page_writes ${server.fullPageWrites}, synchronous_commit ${server.synchronousCommit}: a crash takes back what was answered, and a code could be used twice`,
      todo: `set all three to on, for the server, the database and the role ${role}`,
    },
    !server.takesWrites && {
      requirement: 'writes',
      says: 'the database takes no writes: it is a standby, or default_transaction_read_only is on',
      todo: `name the primary in DATABASE_URL, or set default_transaction_read_only = off for the server, the database and the role ${role}`,
    },
    room < connections && {
      requirement: 'connections',
      says: `the processes may open ${connections} connections, and the database has room for ${room}: requests wait for those that there are`,
      todo: `lower PAWL_DATABASE_POOL_SIZE, or raise max_connections and the connection limits of the database and the role ${role}`,
    },
  ]
  return found.filter((unmet) => unmet !== false)
}

/** True when commits of this session survive a crash of the server and, with synchronous standbys, the loss of the server. */
export const IS_DURABLE = sql<boolean>`(current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' and (
  current_setting('synchronous_commit') in ('on', 'remote_apply', 'remote_write')
  or current_setting('synchronous_commit') = 'local' and current_setting('synchronous_standby_names') = ''))`

interface Server {
  readonly role: string
  readonly encoding: string
  readonly fsync: string
  readonly fullPageWrites: string
  readonly synchronousCommit: string
  readonly isDurable: boolean
  readonly takesWrites: boolean
  /** The most connections that the role may have when no other role has any. */
  readonly room: number
}

async function readServer(db: Db): Promise<Server> {
  const { rows } = await sql<Server>`
    select quote_ident(session_user) as role, current_setting('server_encoding') as encoding, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as "fullPageWrites", current_setting('synchronous_commit') as "synchronousCommit",
      ${IS_DURABLE} as "isDurable", current_setting('transaction_read_only') = 'off' as "takesWrites",
      case when r.rolsuper then s.all_connections
        else least(s.all_connections - s.reserved, nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1)) end as room
    from pg_roles r, pg_database d, (
      select current_setting('max_connections')::int as all_connections, current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true)::int, 0) as reserved
    ) s
    where r.rolname = session_user and d.datname = current_database()`.execute(db)
  return onlyRow(rows)
}

interface WrongSetting {
  readonly name: string
  readonly value: string
  readonly expected: string
}

/**
 * Returns the settings in which this session differs. In transaction mode a session may differ, because the pooler passes on only some settings.
 */
async function findWrongSettings(db: Db): Promise<readonly WrongSetting[]> {
  const expected = sql.join(Object.entries(SESSION_SETTINGS).map(([name, value]) => sql`(${name}::text, ${value}::text)`))
  const { rows } = await sql<WrongSetting>`
    select name, current_setting(name) as value, expected from (values ${expected}) as s (name, expected)
    where current_setting(name) <> expected`.execute(db)
  return rows
}
