// The protocol versions of generation 3 that tests go through.
import type { PhoneVersion } from '../../phone/v3/crypto.ts'

/** All of them, and beside PostgreSQL the first and the last: what differs between them is not in the database, and the other run has them all. */
export const PHONE_VERSIONS: readonly PhoneVersion[] = process.env['PAWL_TEST_DATABASE_URL']
  ? ['3.0', '3.3']
  : ['3.0', '3.1', '3.2', '3.3']
