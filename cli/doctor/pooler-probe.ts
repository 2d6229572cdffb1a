// Finds a pooler between pawl and PostgreSQL by queries. A pooler names another server process than the one that answers; in transaction mode
// it gives one server process to two open sessions.
import pg from 'pg'
import { parseDatabaseUrl } from '../../src/lib/database-url.ts'
import type { Pooler } from '../../src/storage/database/postgres.ts'

export interface FoundPooler {
  readonly pooler: Pooler
  /** Whether the role gives a session a limit for its statements. */
  readonly hasTimeLimit: boolean
}

/** Probes the first host of the URL that answers. Rejects when none does. */
export async function findPooler(databaseUrl: string): Promise<FoundPooler> {
  const failures: unknown[] = []
  for (const connectionString of parseDatabaseUrl(databaseUrl)?.urls ?? []) {
    const sessions = [1, 2].map(() => openSession(connectionString))
    const [one, other] = sessions
    try {
      if (one === undefined || other === undefined) continue
      await one.connect()
      const { rows } = await one.query<{ limit: string }>(`select current_setting('statement_timeout') as limit`)
      const hasTimeLimit = rows[0]?.limit !== '0'
      if ((await readServer(one)) === one.processID) return { pooler: 'none', hasTimeLimit }
      await other.connect()
      return { pooler: (await areServersShared(one, other)) ? 'transaction' : 'session', hasTimeLimit }
    } catch (error) {
      failures.push(error)
    } finally {
      for (const session of sessions) void session.end().catch(() => undefined)
    }
  }
  throw failures[0]
}

const openSession = (connectionString: string) => {
  const session = new pg.Client({ connectionString, connectionTimeoutMillis: ANSWER_MS, query_timeout: ANSWER_MS })
  session.on('error', () => undefined)
  // node-postgres learns the process id at the start of the session, but its types lack the member.
  return session as pg.Client & { readonly processID: number }
}

/** Whether two open sessions get the same server process, which happens only in transaction mode. */
async function areServersShared(one: pg.Client, other: pg.Client): Promise<boolean> {
  const servers = new Set<number | undefined>()
  for (let round = 0; round < ROUNDS; round += 1) {
    servers.add(await readServer(one))
    // In session mode each session keeps its server, so the pooler may have no server left for the second session.
    const second = await readServer(other).catch(() => undefined)
    if (second === undefined) return false
    if (servers.has(second)) return true
  }
  return false
}

async function readServer(session: pg.Client): Promise<number | undefined> {
  const { rows } = await session.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid
}

const ANSWER_MS = 2_000
// A pooler with many server processes may give each session another one by chance, so the probe repeats the question.
const ROUNDS = 50
