// Statements whose text never changes, for what every request asks: building one anew costs more than running it.
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type RawBuilder } from 'kysely'

/** The text of a statement that is written with placeholders ($1) in place of values. */
export function toConstantText(statement: RawBuilder<unknown>): string {
  const { sql, parameters } = statement.compile(COMPILER)
  if (parameters.length > 0) throw new TypeError('a constant text with a value in it')
  return sql
}

/** Runs nothing. */
const COMPILER = new Kysely<Record<string, never>>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (database) => new PostgresIntrospector(database),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})
