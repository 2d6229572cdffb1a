// Explains a failure of the database to the person who starts pawl, in one line: the setting, the cause, and the remedy.
import { sayUnreadable, StartError } from '../../lib/errors.ts'
import { describeConnectionFailure } from '../../lib/outbound.ts'
import type { Database } from './database.ts'
import { codeOf, NOT_SENT } from './postgres-connection.ts'

/**
 * Returns the StartError to throw in place of `error`. Returns `error` itself unless its cause is that the database cannot be reached, refuses this
 * role, or has no room.
 */
export function explainDatabaseFailure(
  error: unknown,
  { kind, location }: Pick<Database, 'kind' | 'location'>,
  setting = 'DATABASE_URL',
): unknown {
  const named = kind === 'embedded' ? 'PAWL_DATA_DIR' : setting
  if (error instanceof StartError) return nameSetting(error, named)
  // An embedded database has no connection: of these states it can only be in those of class 53, without room.
  if (!(error instanceof Error) || (kind === 'embedded' && !String(codeOf(error)).startsWith('53'))) return error
  const said = describe(error)
  return said === undefined ? error : new StartError(`${named}: ${location} ${said}`, { cause: error })
}

/** Returns the error of the server or socket when no connection was made, and every other error unchanged. */
export const reasonOf = (error: unknown): unknown =>
  error instanceof Error && codeOf(error) === NOT_SENT ? (error.cause ?? error) : error

/** Puts the name of the setting before a message that begins with none. */
function nameSetting(error: StartError, setting: string): StartError {
  return /^(PAWL_[A-Z_]+|DATABASE_URL)\b/.test(error.message)
    ? error
    : new StartError(`${setting}: ${error.message}`, { cause: error.cause })
}

/** Returns the remedy for an error of PostgreSQL, by its SQLSTATE. */
export function adviceOf(error: unknown): string | undefined {
  const code = String(codeOf(error))
  return SQLSTATE.test(code) ? STATES.find(([pattern]) => pattern.test(code))?.[2] : undefined
}

function describe(error: Error): string | undefined {
  const { message } = error
  const inOneLine = message.replace(/\s*\n\s*/g, ' ')
  if (message.startsWith('unsupported startup parameter')) return `refuses the connection: ${inOneLine}`
  const reason = reasonOf(error)
  if (reason !== error && reason instanceof Error) {
    const said = describe(reason)
    // With several hosts, the message quotes the last one.
    return message.startsWith('no host takes writes')
      ? `has no host that takes writes, the last one ${said ?? reason.message}`
      : said
  }
  const code = String(codeOf(error) ?? '')
  const state = STATES.find(([pattern]) => pattern.test(code))
  if (state !== undefined && SQLSTATE.test(code)) return `${state[1]} (${code}: ${inOneLine}): ${state[2]}`
  const [, says, todo] = MESSAGES.find(([pattern]) => pattern.test(message)) ?? []
  if (says !== undefined) return `${says}: ${todo}`
  const path = 'path' in error ? String(error.path) : undefined
  if (path !== undefined) return `needs ${path}, which ${sayUnreadable(error)}: look at sslrootcert, sslcert and sslkey`
  if (code.startsWith('ERR_OSSL_') || message.includes('PEM routines'))
    return `needs files in PEM, and one is none (${code || 'no code'}): look at sslrootcert, sslcert and sslkey`
  return SYSTEM.test(code) ? describeConnectionFailure(error, 'sslrootcert in it') : undefined
}

// Five letters or digits: two of the class, three of the condition. A SQLSTATE has a digit, and the code of a socket error has none.
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/
const SYSTEM =
  /^E(CONN|HOST|NET|TIME|NOTFOUND|AI|PIPE|PROTO|ADDR|ACCES|PERM|MFILE|NFILE)|^ERR_(SSL|TLS)_|CERT|SIGNATURE|ISSUER|^INVALID_|_CHAIN|MISMATCH/

const STATES: readonly (readonly [pattern: RegExp, says: string, todo: string])[] = [
  [/^28P01$/, 'refuses the password', 'look at user and password in it; / ? # and @ in a password are written %2F %3F %23 %40'],
  [/^28/, 'refuses the login', 'look at the user in it, and at pg_hba.conf of the server'],
  [/^3D000$/, 'has no such database', 'look at the name behind the last slash, or make it: create database ... owner ...'],
  [/^3F000$/, 'has no schema for pawl', 'create one for the role, and name it in its search_path'],
  [
    /^42501$/,
    'does not allow this to the role',
    'let the role own the database, or grant it create on the schema and make it the owner of the tables',
  ],
  [
    /^53300$/,
    'has no room for another connection',
    'raise max_connections or the limit of the database or role, or lower PAWL_DATABASE_POOL_SIZE',
  ],
  [/^53/, 'has no room left', 'look at its disk and memory'],
  [/^57P03$/, 'takes no connections yet', 'wait until it has started'],
  [
    /^(57014|55P03|25P03|25P04)$/,
    'ended a statement that took too long',
    'look at what it waits for: select * from pg_stat_activity',
  ],
  [/^57/, 'was stopped', 'start it again; its log says why'],
  [
    /^25006$/,
    'takes no writes',
    'name the primary, or set default_transaction_read_only = off for the server, the database and the role',
  ],
  [/^08P01$/, 'refuses the connection', 'look at the databases and users that a pooler before it knows, and at its log'],
  [/^08/, 'broke off', 'its log may say why, or that of a pooler or proxy between'],
]

/** Messages of node-postgres that come without a code. */
const MESSAGES: readonly (readonly [pattern: RegExp, says: string, todo: string])[] = [
  [
    /^(timeout exceeded when trying to connect|timeout expired|the server did not answer|Query read timeout|Connection terminated due to connection timeout)/,
    'did not answer in time',
    'it stands still, a pooler has no server for it, a firewall drops what is sent there, or its port is that of another program',
  ],
  [/^the server takes no writes/, 'takes no writes', 'name the primary, or leave out target_session_attrs'],
  [/^The server does not support SSL/, 'speaks no TLS', 'turn it on there (ssl = on), or say sslmode=disable'],
  [/^There was an error establishing an SSL/, 'is no PostgreSQL', 'look at host and port'],
  [/^URI malformed/, 'has a % that nobody can decode', 'a % in user, password or database is written %25'],
  [/^SASL.*password must be/, 'asks for a password', 'there is none in it'],
  [/^SASL/, 'does not prove that it knows the password', 'look at the password, and at whether this is your server'],
  [
    /^received invalid response|^Unknown message|^invalid message/i,
    'does not answer as PostgreSQL does',
    'look at host and port',
  ],
  [
    /^Connection terminated|^Client has encountered a connection error/,
    'ended the connection',
    'look at host and port: it may be no PostgreSQL; its log may say why, or that of a pooler or proxy between',
  ],
]

/** Keeps 40 frames of a stack: between a driver and an endpoint there are more than the 10 that V8 keeps. */
export function keepLongStacks(): void {
  Error.stackTraceLimit = 40
}

/**
 * Handles the rejection of a promise: adds the awaiting callers to the stack of the error, and rethrows it. V8 follows awaited promises, but loses
 * the caller of a promise that another function settles. When several callers await the same error, its stack names the first.
 */
export function addCallers(error: unknown): never {
  if (error instanceof Error && !extended.has(error)) {
    extended.add(error)
    const waiting = { stack: '' }
    Error.captureStackTrace(waiting, addCallers)
    error.stack += waiting.stack.replace(/^.*/, '')
  }
  throw error
}

const extended = new WeakSet<Error>()
