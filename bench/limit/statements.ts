// The statements of a window: taken from the log of PostgreSQL, and run again by pgbench.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { treeCpuMicroseconds } from '../http/cpu.ts'
import { type Postgres, startPostgres } from '../http/postgres.ts'

/** A statement as it was executed: its text with `$1`, and its values as literals. */
interface Executed {
  readonly text: string
  readonly values: readonly string[]
}

export const startLoggingPostgres = (): Promise<Postgres> =>
  startPostgres(['logging_collector=on', 'log_destination=jsonlog', 'log_rotation_size=0', 'log_file_mode=0644'])

/** Runs `work` with every statement logged. `copyUrl`: a copy of the database as it was before. */
export async function recordStatements<Figures>(
  { folder, createDatabase }: Postgres,
  databaseUrl: string,
  work: () => Promise<Figures>,
): Promise<{ readonly figures: Figures; readonly statements: readonly Executed[]; readonly copyUrl: string }> {
  const copyUrl = createDatabase(`copy_${process.hrtime.bigint()}`)
  const dump = execFileSync('pg_dump', ['--no-owner', databaseUrl], { maxBuffer: 2 ** 30 })
  execFileSync('psql', ['--quiet', '--set=ON_ERROR_STOP=1', copyUrl], { input: dump, stdio: ['pipe', 'ignore', 'inherit'] })
  execFileSync('psql', ['--quiet', '--command=VACUUM ANALYZE', copyUrl], { stdio: 'ignore' })
  return { ...(await logStatements(folder, databaseUrl, work)), copyUrl }
}

/** Runs `work` with every statement logged that is not of a transaction. `folder`: of the data of the PostgreSQL. */
export async function logStatements<Figures>(
  folder: string,
  databaseUrl: string,
  work: () => Promise<Figures>,
): Promise<{ readonly figures: Figures; readonly statements: readonly Executed[] }> {
  const { pathname } = new URL(databaseUrl)
  const seen = readLog(folder).length
  await setLogging(databaseUrl, 'all')
  const figures = await work()
  await setLogging(databaseUrl, 'none')
  const statements = readLog(folder)
    .slice(seen)
    .filter((line) => line.dbname === pathname.slice(1))
    .flatMap(parseLine)
  return { figures, statements }
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
  readonly detail?: string
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

/** Transactions are left out: in one session, those of several would be mixed up. So is what sealing and housekeeping do beside. */
function parseLine({ message = '', detail = '' }: LogLine): Executed[] {
  const [, text] = /^execute [^:]*: (.*)$/s.exec(message) ?? []
  if (text === undefined || OTHERS.test(text)) return []
  const [, list = ''] = /^parameters: (.*)$/s.exec(detail) ?? []
  const values = [...list.matchAll(/\$\d+ = ('(?:[^']|'')*'|NULL)/g)].map(([, value = 'NULL']) => value)
  return [{ text, values }]
}

const OTHERS = /^(begin|commit|rollback|analyze)\b|\baudit_(log|chain|sealer|user_key)\b/i

/** Microseconds of processor time that PostgreSQL takes for the statements, each prepared once before. */
export async function replayByPgbench(
  { folder, pid }: Postgres,
  databaseUrl: string,
  statements: readonly Executed[],
): Promise<number> {
  const names = new Map([...new Set(statements.map(({ text }) => text))].map((text, i) => [text, `replayed_${i}`]))
  const prepared = [...names].map(([text, name]) => `PREPARE ${name} AS ${text.replaceAll(/\s+/g, ' ')};`)
  const executed = statements.map(
    ({ text, values }) => `EXECUTE ${names.get(text)}${values.length > 0 ? `(${values.join(', ')})` : ''};`,
  )
  const run = (lines: readonly string[]): number => {
    const script = join(folder, 'replay.sql')
    writeFileSync(script, `${lines.join('\n')}\n`)
    const before = treeCpuMicroseconds(pid)
    execFileSync('pgbench', ['--no-vacuum', '--client=1', '--transactions=1', `--file=${script}`, databaseUrl], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return treeCpuMicroseconds(pid) - before
  }
  // A session and its preparations by themselves are not part of the figure.
  const alone = run(prepared)
  return run([...prepared, ...executed]) - alone
}
