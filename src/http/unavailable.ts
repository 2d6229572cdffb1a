// Telling a lost dependency from a bug, by what databases and sockets say.

/** True when the database could not be reached or gave up, so that the same request may be served later. */
export function isUnavailable(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  if ('code' in error && typeof error.code === 'string' && UNAVAILABLE_CODES.test(error.code)) return true
  return error instanceof Error && UNAVAILABLE_MESSAGES.test(error.message)
}

// SQLSTATE classes 08 connection, 53 resources, 57 operator intervention, 40 rolled back by the server. 25006 read-only and 55000 not
// accepting connections show while a standby takes over. 23503 says that the phone or operation that a row belongs to was deleted since it was
// read. The rest is what sockets say: EMFILE and ENFILE when there is no descriptor for another one.
const UNAVAILABLE_CODES =
  /^(08|53|57|40)[0-9A-Z]{3}$|^(23503|25006|55000)$|^(EMFILE|ENFILE|ENOBUFS|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)$/
// node-postgres throws these without a code.
const UNAVAILABLE_MESSAGES =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Query read timeout|driver has already been destroyed)/
