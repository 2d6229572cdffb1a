// The tables that deploy/citus.sql spreads can be spread, and no statement joins rows of different nodes, other than those that are named here
// (docs/decisions/0020-spreading.md).
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createInMemory, type Embedded } from '../../src/storage/database/embedded.ts'
import { readTemplate, serverUrl } from '../helpers/app.ts'
import { lendInstance } from '../helpers/lent-database.ts'
import { findStatementTables, type StatementTables } from '../helpers/statement-tables.ts'

/** Statements that read what is spread together with what stays on the coordinator. */
const ACROSS_NOW: Record<string, readonly string[]> = {
  'a union whose parts are read apart': [
    'listAuditItems',
    'listAuditItems of verifications',
    'listOwnerlessItems',
    'readUserRows',
  ],
  'takes rows away in one part of a `with` and inserts them in another': ['placeRows'],
}

/** Statements that join what the rest of deploy/citus.sql would take apart, and why each is one statement. */
const ACROSS_LATER: Record<string, readonly string[]> = {
  'a code and the values that it uses up are checked and stored in one trip': [
    'createAuthenticationStore for several at once',
    'findProofs',
    'findProofs for several at once',
    'findStatusProofs',
    'insertToken',
    'recordOpening',
    'recordOpening of an application',
    'storeAuthentication',
    'storeAuthenticationAndLock',
    'storeFactorKeys',
    'storeKeyExchange',
    'storeKeyExchange for several at once',
    'storeKeyExchange that commits',
    'useTokenAtDoor',
  ],
  'a door reads phone, token or envelope, and what was answered before in one trip': [
    'findChallenge',
    'findDoorEnvelopes',
    'findDoorParties',
    'findDoorParties of several at once',
    'findDoorToken',
  ],
  'a push has its operation or message and the token of its phone in one trip': ['findPushTarget'],
  'challenges and temporary keys belong to an activation, but are found by their own id': [
    'insertChallenge',
    'insertTemporaryKey',
    'insertTemporaryKey for several at once',
    'readUserRows',
  ],
  'the app that moves and the one that takes its place end and begin in one trip': ['storeKeyExchangeOfChild'],
  'the key exchange reads all that it needs in one trip': ['createExchangeBasisReader for one and for several'],
  "an operation is its user's, the phone and its audit rows are the activation's": [
    'cancelPendingOperation',
    'claimOperation',
    'countOperationFailure',
    'endOperation',
    'insertOperation',
    'insertOperation of nobody',
    'lockOperation',
  ],
  "a phone reads its user's operations and messages with its token in one trip": ['createTokenReads'],
  'what belongs to a row goes with it': ['deleteOldActivations', 'deleteOldOperations', 'deleteUselessNonces', 'deleteUserRows'],
  'sums for an administrator, which no request waits for': ['countByKey', 'readVitalSigns'],
  'an administrator looks for users by the beginning of their name': ['searchOperations of a beginning'],
  'rows of versions before 0.3': ['takeOverEvents'],
}

const readText = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const citus = readText('deploy/citus.sql')

/** Table -> the column that it is spread by, or `everywhere`. */
const spread = new Map([
  ...[...citus.matchAll(/^select create_distributed_table\('(\w+)', '(\w+)'\)/gm)].map(
    ([, table = '', by = '']) => [table, by] as const,
  ),
  ...[...citus.matchAll(/^select create_reference_table\('(\w+)'\)/gm)].map(([, table = '']) => [table, 'everywhere'] as const),
])

/** The same for the rest of the tables, some of which would be on `one node`. */
const planned = new Map(
  [...citus.matchAll(/^-- would (?:spread by|be|stay on) (\w+|one node): ((?:.+,\n-- +)*.+)$/gm)].flatMap(
    ([, by = '', tables = '']) => tables.split(/,[\s-]*/).map((table) => [table, by] as const),
  ),
)

// The statements are the same on both databases, and the parser is PostgreSQL's on both.
describe.runIf(serverUrl() === undefined)('statements and keys', () => {
  let embedded: Embedded
  let statements: StatementTables[]
  beforeAll(async () => {
    embedded = await createInMemory(lendInstance(readTemplate()))
    statements = await findStatementTables(embedded)
  })
  afterAll(() => embedded.pglite.close())

  /** Titles of statements whose tables are in more than one place. */
  const findAcross = (placeOf: (table: string) => string): string[] => {
    const isAcross = (tables: readonly string[]) =>
      new Set(tables.map(placeOf).filter((place) => place !== 'everywhere')).size > 1
    return [...new Set(statements.filter(({ tables }) => isAcross(tables)).map(({ title }) => title))].toSorted()
  }

  test('every table has one place', async () => {
    const { rows } = await embedded.pglite.query<{ name: string }>(
      `select relname as name from pg_class where relkind in ('r', 'p') and not relispartition and relnamespace = current_schema()::regnamespace
        and relname not like 'kysely%' order by 1`,
    )
    expect([...spread.keys(), ...planned.keys()].toSorted()).toEqual(rows.map(({ name }) => name))
  })

  test('the parser has seen what statements touch', () => {
    const tablesOf = (title: string) => statements.find((statement) => statement.title === title)?.tables.toSorted()
    expect(tablesOf('placeRows')).toEqual(['audit_log', 'audit_pending'])
    expect(tablesOf('findRegistrations')).toEqual(['activation'])
    expect(new Set(statements.flatMap(({ tables }) => tables)).size).toBeGreaterThan(35)
  })

  test('no other statement reads what is spread together with what is not', () => {
    expect(findAcross((table) => spread.get(table) ?? 'one node')).toEqual(Object.values(ACROSS_NOW).flat().toSorted())
  })

  test('no other statement stands in the way of the rest', () => {
    expect(findAcross((table) => spread.get(table) ?? planned.get(table) ?? '')).toEqual(
      Object.values(ACROSS_LATER).flat().toSorted(),
    )
  })

  /** Names of keys and triggers that Citus refuses, with tables at these places. */
  async function findRefused(placeOf: (table: string) => string): Promise<string[]> {
    const tables = [...spread.keys(), ...planned.keys()]
    const { rows } = await embedded.pglite.query<{ name: string }>(FIND_REFUSED, [tables, tables.map(placeOf)])
    return rows.map(({ name }) => name)
  }

  test('no key and no trigger keeps Citus from spreading what it is to spread', async () => {
    expect(await findRefused((table) => spread.get(table) ?? 'one node')).toEqual([])
  })

  test('docs/SIZING.md has a line for each key and trigger that stands in the way of the rest', async () => {
    const lines = [...readText('docs/SIZING.md').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
    expect(lines.toSorted()).toEqual(await findRefused((table) => spread.get(table) ?? planned.get(table) ?? ''))
  })
})

// A column to spread by that may be null, a unique index without it, a trigger, and a foreign key but to a table that is everywhere, within
// one node, or between tables that are spread by a column of the key.
const FIND_REFUSED = `
  with place as (
    select c.oid, g.place, a.attnum, a.attnotnull, c.relname from unnest($1::text[], $2::text[]) as g (name, place)
      join pg_class c on c.oid = g.name::regclass left join pg_attribute a on a.attrelid = c.oid and a.attname = g.place
  )
  select relname || '_' || place as name from place where attnum is not null and not attnotnull
  union all
  select i.indexrelid::regclass::text from place p join pg_index i on i.indrelid = p.oid where i.indisunique and p.attnum <> all(i.indkey)
  union all
  select t.tgname from place p join pg_trigger t on t.tgrelid = p.oid where p.attnum is not null and not t.tgisinternal
  union all
  select k.conname from pg_constraint k join place c on c.oid = k.conrelid join place p on p.oid = k.confrelid
  where k.contype = 'f' and p.place <> 'everywhere' and not (c.place = p.place and (p.attnum is null or c.attnum = any(k.conkey)))
  order by 1`
