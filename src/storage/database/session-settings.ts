// Sets what pawl takes for granted of a session: how times, numbers and bytes are written, and what a statement without BEGIN sees. Server,
// database and role may each be set to something else, so every connection says it.

/** By the names and in the spelling of PostgreSQL, which gives the same text back. */
export const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
  bytea_output: 'hex',
  extra_float_digits: '1',
  // Or NULL in an array is the text of four letters.
  array_nulls: 'on',
  // A statement that loses a race looks again; stricter levels would refuse it instead.
  default_transaction_isolation: 'read committed',
}

/** Those that PgBouncer takes at the start of a connection and gives to each server that it lends, in transaction mode as well. */
export const POOLED_SETTINGS: Readonly<Record<string, string>> = Object.fromEntries(
  ['DateStyle', 'TimeZone', 'standard_conforming_strings'].map((name) => [name, SESSION_SETTINGS[name] ?? '']),
)

/** One text of statements that give these settings to a session. */
export const composeSet = (settings: Readonly<Record<string, string | number>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = '${value}'`)
    .join('; ')
