// The log: one JSON object a line on stdout, constant text plus fields, with every member that may hold a secret redacted.
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { currentScope } from '../lib/trace.ts'
import type { LineSink } from './line-sink.ts'

export type Log = Logger

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A log that writes `level` and above to a sink, with `fields` in every line, and says how many lines the sink had to drop once it takes lines again. */
export function createProcessLog(level: LogLevel, sink: LineSink, fields?: Readonly<Record<string, unknown>>): Log {
  const log = createLog(level, sink, fields)
  sink.onRecovered((dropped) => log.error({ dropped }, 'log lines were dropped, because nobody took them'))
  return log
}

/** A log that writes `level` and above to `destination`, with the ids of the request and of the trace that a line is written for. */
export function createLog(level: LogLevel, destination: DestinationStream, fields?: Readonly<Record<string, unknown>>): Log {
  return pino(
    {
      level,
      base: fields ?? null,
      // Not pino's own redaction: its paths name no depth at will, and 67 of them cost a line 45 µs, more than all the rest of it.
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

/** What a log line says of an error. Errors of databases carry statements, parameters and connections with their keys. */
function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name: type, message, stack, cause } = error
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  const described = { type, message, code, constraint, stack }
  return cause === undefined || depth > 4 ? described : { ...described, cause: describeError(cause, depth + 1) }
}

/** In place of a secret. */
const CENSORED = '[secret]'

/**
 * The same fields, with every member of a secret's name censored in plain objects and arrays, ten levels deep. What holds none is not copied.
 * Objects of other classes stay as they are: the log writes them by their own serializers.
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

// Fields refer to themselves nowhere; a line that does is cut by the serializer of the log.
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
