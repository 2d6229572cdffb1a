// Counts the statements of a window in the log of PostgreSQL.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type Postgres, startPostgres } from './postgres.ts'

export const startLoggingPostgres = (): Promise<Postgres> =>
  startPostgres(['logging_collector=on', 'log_destination=jsonlog', 'log_rotation_size=0', 'log_file_mode=0644'])

/** The number of statements outside of transactions that run during `work`. `folder`: the folder of PostgreSQL's data. */
export async function countLogged(folder: string, databaseUrl: string, work: () => Promise<unknown>): Promise<number> {
  const { pathname } = new URL(databaseUrl)
  const seen = readLog(folder).length
  await setLogging(databaseUrl, 'all')
  await work()
  await setLogging(databaseUrl, 'none')
  return readLog(folder)
    .slice(seen)
    .filter((line) => line.dbname === pathname.slice(1) && isCounted(line)).length
}

async function setLogging(databaseUrl: string, which: 'all' | 'none'): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(`ALTER SYSTEM SET log_statement = '${which}'`)
  await client.query('SELECT pg_reload_conf(), pg_sleep(0.3)')
  await client.end()
}

interface LogLine {
  readonly dbname?: string
  readonly message?: string
}

function readLog(folder: string): LogLine[] {
  const files = readdirSync(join(folder, 'log')).filter((name) => name.endsWith('.json'))
  return files.flatMap((name) =>
    readFileSync(join(folder, 'log', name), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LogLine),
  )
}

/** Leaves out transactions, and statements of sealing and housekeeping. */
function isCounted({ message = '' }: LogLine): boolean {
  const [, text] = /^execute [^:]*: (.*)$/s.exec(message) ?? []
  return text !== undefined && !OTHERS.test(text)
}

const OTHERS = /^(begin|commit|rollback|analyze)\b|\baudit_(log|chain|sealer|user_key)\b/i
