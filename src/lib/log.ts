// The log: one JSON object a line on stdout, constant text plus fields, with every member that may hold a secret redacted.
import { destination as openDestination, pino, stdTimeFunctions } from 'pino'
import type { DestinationStream, Logger } from 'pino'

export type Log = Logger

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A log that writes `level` and above to stdout, or to `destination` in tests. */
export function createLog(level: LogLevel, destination: DestinationStream = openDestination({ fd: 1, sync: true })): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      redact: { paths: REDACTED_PATHS, censor: '[secret]' },
      serializers: { err: (error: unknown) => describeError(error) },
    },
    destination,
  )
}

// Request headers that carry credentials or codes. Encryption headers name keys and an activation, and stay readable.
const SECRET_HEADERS = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-powerauth-authorization',
  'x-powerauth-token',
  'x-svc-authorization',
  'x-svc-token',
]

// Members of pawl's own records and of request bodies.
const SECRET_MEMBERS = [
  'password',
  'adminPassword',
  'masterKey',
  'databaseUrl',
  'connectionString',
  'applicationSecret',
  'appSecret',
  'tokenSecret',
  'sharedSecret',
  'secret',
  'privateKey',
  'keyTransport',
  'activationCode',
  'activationOtp',
  'otp',
]

// A leading star stands for exactly one level, so members are named at the top and one and two levels down.
const REDACTED_PATHS = [
  ...SECRET_HEADERS.flatMap((name) => [`headers["${name}"]`, `*.headers["${name}"]`]),
  ...SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
]

/** What a log line says of an error. Databases hang statements, parameters and connections with their keys on theirs. */
function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name: type, message, stack, cause } = error
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  const described = { type, message, code, constraint, stack }
  return cause === undefined || depth > 4 ? described : { ...described, cause: describeError(cause, depth + 1) }
}
