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

test('an embedded database without room is one line, which names its directory; other errors of its statements are bugs', () => {
  const directory = { kind: 'embedded', location: '/data' } as const
  const full = Object.assign(new Error('could not extend file'), { code: '53100' })
  expect(explainDatabaseFailure(full, directory)).toMatchObject({
    name: 'StartError',
    message: 'PAWL_DATA_DIR: /data has no room left (53100: could not extend file): look at its disk and memory',
  })
  const bug = Object.assign(new Error('syntax error'), { code: '42601' })
  expect(explainDatabaseFailure(bug, directory)).toBe(bug)
})

test('a URL with a % that nobody can decode is explained', () => {
  expect(explainDatabaseFailure(new URIError('URI malformed'), DATABASE)).toMatchObject({
    name: 'StartError',
    message: 'DATABASE_URL: postgres://db/pawl has a % that nobody can decode: a % in user, password or database is written %25',
  })
})
