// Lists the protocol versions of generation 3, and the algorithms of 4.0, that tests go through.
import type { PhoneVersion } from '../../phone/v3/crypto.ts'
import { PHONE_ALGORITHMS } from '../../phone/v4/crypto.ts'

/** For tests of how the versions stand to each other, and for those that run once and cost little. */
export const ALL_PHONE_VERSIONS: readonly PhoneVersion[] = ['3.0', '3.1', '3.2', '3.3']

/**
 * The first and the last, so that nobody waits long. With CI set, a run on the embedded database goes through all of them. Where a run on PostgreSQL
 * follows it goes through two, and a run on PostgreSQL always goes through the other two. Only 3.3 keeps something of its own in the database, its
 * temporary keys: it is one of those on PostgreSQL, and the phone of tests that name no version on both.
 */
export const PHONE_VERSIONS: readonly PhoneVersion[] = choose<PhoneVersion>({
  quick: ['3.0', '3.3'],
  all: ALL_PHONE_VERSIONS,
  embedded: ['3.0', '3.2'],
  postgresql: ['3.1', '3.3'],
})

/** All of them. With CI set, a run on PostgreSQL has one, and a run before it the others. The first is the phone of tests that name no algorithm. */
export const TESTED_ALGORITHMS: readonly (typeof PHONE_ALGORITHMS)[number][] = choose<(typeof PHONE_ALGORITHMS)[number]>({
  quick: PHONE_ALGORITHMS,
  all: PHONE_ALGORITHMS,
  embedded: ['EC_P384', 'EC_P384_ML_L5'],
  postgresql: ['EC_P384_ML_L3'],
})

function choose<T>(from: Readonly<Record<'quick' | 'all' | 'embedded' | 'postgresql', readonly T[]>>): readonly T[] {
  const { CI, PAWL_TEST_DATABASE_URL, PAWL_TEST_POSTGRES_FOLLOWS } = process.env
  if (CI === undefined) return from.quick
  if (PAWL_TEST_DATABASE_URL) return from.postgresql
  return PAWL_TEST_POSTGRES_FOLLOWS ? from.embedded : from.all
}
