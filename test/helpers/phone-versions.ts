// Lists the protocol versions of generation 3 that tests go through.
import type { PhoneVersion } from '../../phone/v3/crypto.ts'

const isWhole = process.env['CI'] !== undefined && process.env['PAWL_TEST_DATABASE_URL'] === undefined

/**
 * All of them in CI, elsewhere the first and the last, so that nobody waits long. The versions do not differ in the database, so CI goes through
 * all of them on the embedded database only.
 */
export const PHONE_VERSIONS: readonly PhoneVersion[] = isWhole ? ['3.0', '3.1', '3.2', '3.3'] : ['3.0', '3.3']
