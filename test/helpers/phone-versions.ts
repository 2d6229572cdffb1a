// Lists the protocol versions of generation 3 that tests go through.
import type { PhoneVersion } from '../../phone/v3/crypto.ts'

/** For tests of how the versions stand to each other, and for those that run once and cost little. */
export const ALL_PHONE_VERSIONS: readonly PhoneVersion[] = ['3.0', '3.1', '3.2', '3.3']

/**
 * The first and the last, so that nobody waits long. CI goes through all of them: on one database where no other run follows, else through two on
 * each. Only 3.3 keeps something of its own in the database, its temporary keys: it is one of those on PostgreSQL, and the phone of tests that
 * name no version on both.
 */
export const PHONE_VERSIONS: readonly PhoneVersion[] = chooseVersions()

function chooseVersions(): readonly PhoneVersion[] {
  const { CI, PAWL_TEST_DATABASE_URL, PAWL_TEST_POSTGRES_FOLLOWS } = process.env
  if (CI === undefined) return ['3.0', '3.3']
  if (PAWL_TEST_DATABASE_URL) return ['3.1', '3.3']
  return PAWL_TEST_POSTGRES_FOLLOWS ? ['3.0', '3.2'] : ALL_PHONE_VERSIONS
}
