// A statement or transaction that runs into a time limit of the database is explained in one line, not shown as a bug with its stack.
import { expect, test } from 'vitest'
import { StartError } from '../../lib/errors.ts'
import { explainDatabaseFailure } from './failure.ts'

const DATABASE = { kind: 'postgresql', location: 'postgres://db/pawl' } as const

// statement_timeout, lock_timeout, idle_in_transaction_session_timeout and transaction_timeout.
test.each(['57014', '55P03', '25P03', '25P04'])('%s', (code) => {
  const explained = explainDatabaseFailure(Object.assign(new Error('late'), { code }), DATABASE)
  expect(explained).toBeInstanceOf(StartError)
  expect(explained).toMatchObject({
    message: `DATABASE_URL: postgres://db/pawl ended a statement that took too long (${code}: late): look at what it waits for: select * from pg_stat_activity`,
  })
})
