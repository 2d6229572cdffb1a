// The log: one JSON object a line on stdout, constant text plus fields, with every member that may hold a secret redacted.
import { pino, stdTimeFunctions } from 'pino'
import type { DestinationStream, Logger } from 'pino'
import type { LineSink } from './line-sink.ts'
import { redact } from './redact.ts'
import { currentScope } from '../lib/trace.ts'

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
