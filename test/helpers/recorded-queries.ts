// Records the statements of a storage function, which a real database then explains.
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import type { Db, Tx } from '../../src/storage/database/database.ts'
import type { Schema } from '../../src/storage/database/schema.ts'

export interface Query {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Runs a storage function without a database, and returns its statements. */
export async function recordQueries(call: (db: Db, tx: Tx) => Promise<unknown>): Promise<Query[]> {
  const queries: Query[] = []
  const db = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => {
      queries.push({ text: query.sql, values: query.parameters })
    },
  })
  await call(db, db as Tx)
  return queries
}
