// Writes the log: one JSON object a line on stdout, constant text plus fields. Members that may hold a secret are redacted.
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { currentScope } from '../lib/trace.ts'

export type Log = Logger

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Creates a log that writes `level` and above to `destination`. Each line has `fields` and the ids of the current request and trace. */
export function createLog(level: LogLevel, destination: DestinationStream, fields?: Readonly<Record<string, unknown>>): Log {
  return pino(
    {
      level,
      base: fields ?? null,
      // pino's own redaction is not used. Its paths cannot say "at any depth", and 67 of them cost 45 µs a line, more than the rest of the line.
      formatters: { level: (label) => ({ level: label }), log: redact },
      mixin: () => {
        const scope = currentScope()
        if (scope === undefined) return {}
        const { id: requestId, span } = scope
        return span === undefined ? { requestId } : { requestId, traceId: span.traceId }
      },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: (error: unknown) => describeError(error) },
    },
    destination,
  )
}

/** Picks the members of an error for a log line. Other members of database errors hold statements, parameters and connections with their keys. */
function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name: type, message, stack, cause } = error
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  const described = { type, message, code, constraint, stack }
  return cause === undefined || depth > 4 ? described : { ...described, cause: describeError(cause, depth + 1) }
}

const CENSORED = '[secret]'

/**
 * Returns the fields with every member that has the name of a secret censored, in plain objects and arrays up to ten levels deep. A part without
 * secrets is not copied. Objects of other classes stay as they are, because the serializers of the log write them.
 */
export function redact<Fields extends object>(fields: Fields): Fields {
  return redactWithin(fields, 0) as Fields
}

function redactWithin(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value
  if (Array.isArray(value)) return redactItems(value, depth)
  return isPlain(value) ? redactMembers(value as Readonly<Record<string, unknown>>, depth) : value
}

function redactItems(items: readonly unknown[], depth: number): readonly unknown[] {
  const redacted = items.map((item) => redactWithin(item, depth + 1))
  return redacted.some((item, i) => item !== items[i]) ? redacted : items
}

function redactMembers(members: Readonly<Record<string, unknown>>, depth: number): Readonly<Record<string, unknown>> {
  let copy: Record<string, unknown> | undefined
  for (const name in members) {
    const value = members[name]
    const redacted = SECRET_NAMES.has(name) ? CENSORED : redactWithin(value, depth + 1)
    if (redacted === value) continue
    copy ??= { ...members }
    copy[name] = redacted
  }
  return copy ?? members
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

// No fields of pawl refer to themselves. If some did, the serializer of the log would cut the line.
const DEPTH_MAX = 10

const SECRET_NAMES: ReadonlySet<string> = new Set([
  // Request headers that carry credentials or codes. Encryption headers name keys and an activation, and stay readable.
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-powerauth-authorization',
  'x-powerauth-token',
  'x-svc-authorization',
  'x-svc-token',
  // Members of pawl's own records and of request bodies.
  'password',
  'adminPassword',
  'masterKey',
  'masterKeys',
  'vaultToken',
  'databaseUrl',
  'connectionString',
  'applicationSecret',
  'appSecret',
  'tokenSecret',
  'sharedSecret',
  'secret',
  'clientSecret',
  'codeVerifier',
  'privateKey',
  'activationSecret',
  'keyTransport',
  'activationCode',
  'activationOtp',
  'otp',
])
