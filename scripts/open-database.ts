// Opens the configured database for a command line tool, and says in one line when that is not possible.
import { existsSync, readFileSync } from 'node:fs'
import { ConfigError, parseConfig } from '../src/config-parser.ts'
import type { Secrets } from '../src/config-secrets.ts'
import type { Config } from '../src/config-shape.ts'
import { StartError } from '../src/lib/errors.ts'
import { openDatabase } from '../src/storage/database.ts'
import type { Database } from '../src/storage/database.ts'

/**
 * Runs `work` on the database that the server would open with the same environment. Exit status 1 when it cannot be opened.
 * With `mustExist` a missing embedded database is an error; without, it is created.
 */
export async function withDatabase(
  { mustExist }: { mustExist: boolean },
  work: (database: Database, settings: { config: Config; secrets: Secrets }) => Promise<void>,
): Promise<void> {
  try {
    const { config, secrets } = parseConfig(process.env, (path) => readFileSync(path, 'utf8'))
    const { dataDir, databasePoolSize: poolSize } = config
    if (mustExist && secrets.databaseUrl === undefined && !existsSync(dataDir)) {
      throw new StartError(`there is no database in ${dataDir}`)
    }
    const database = await openDatabase({ databaseUrl: secrets.databaseUrl, dataDir, poolSize })
    try {
      await work(database, { config, secrets })
    } finally {
      await database.close()
    }
  } catch (error) {
    for (const line of explain(error)) process.stderr.write(`${line}\n`)
    process.exitCode = 1
  }
}

function explain(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems
  if (error instanceof StartError) return [error.message]
  return [error instanceof Error ? `the database cannot be used: ${error.message || String(error)}` : String(error)]
}
